// SPDX-License-Identifier: Apache-2.0
// Lists that grow by blocks: what stands in them stays where it is while they grow at the end.
#pragma once

#include <boost/container/deque.hpp>

namespace perigee {

template <class T>
using BlockList =
    boost::container::deque<T, void, boost::container::deque_options_t<boost::container::block_size<64u>>>;

}  // namespace perigee
