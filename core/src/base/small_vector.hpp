// SPDX-License-Identifier: Apache-2.0
// Vectors whose first few elements need no allocation.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>

namespace perigee {

template <class T, size_t N>
using SmallVector = boost::container::small_vector<T, N>;

}  // namespace perigee
