// SPDX-License-Identifier: Apache-2.0
// Attributes of operators that slide a window over the last two axes.
#pragma once

#include "perigee/kernel.hpp"

namespace pg::cpu {

// {rows, columns} of a list attribute; one number stands for both, an empty list for `otherwise`.
inline void read_pair(const KernelCall& call, const char* name, int64_t pair[2], const int64_t* otherwise = nullptr) {
  auto list = call.attr<pg_ints>(name);
  if (list.count == 0 && otherwise != nullptr) {
    pair[0] = otherwise[0], pair[1] = otherwise[1];
  } else if (list.count == 1 || list.count == 2) {
    pair[0] = list.value[0], pair[1] = list.value[list.count - 1];
  } else {
    fail_argument(format("%s: %s must be one number or two", call.op(), name));
  }
}

inline void require_float(const KernelCall& call, uint32_t dtype) {
  if (dtype != PG_F32 && dtype != PG_F64 && dtype != PG_BF16 && dtype != PG_F16) {
    fail_support(format("%s: dtype %s is not a real float", call.op(), dtype_name(dtype)));
  }
}

}  // namespace pg::cpu
