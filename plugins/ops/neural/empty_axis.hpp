// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../rules.hpp"

namespace pg {

// Whether the one axis that `axis` names has no elements. (One that is a symbol is taken to have some.)
inline bool is_empty_axis(Value x, const pg_ints& axis) {
  return x.rank() > 0 && x.dim(static_cast<uint32_t>(wrap_axis(axis.value[0], x.rank()))) == 0;
}

}  // namespace pg
