// SPDX-License-Identifier: Apache-2.0
// Attributes of operators that slide a window over the last one to three axes. Kernels see three: fewer have leading
// ones of size 1.
#pragma once

#include "perigee/kernel.hpp"

namespace pg::cpu {

// A list attribute of `axes` numbers into the last entries of three; one number stands for all, an empty list leaves
// what is there.
inline void read_list(const KernelCall& call, const char* name, uint32_t axes, int64_t (&entries)[3]) {
  auto list = call.attr<pg_ints>(name);
  if (list.count == 0) return;
  if (list.count != 1 && list.count != axes) {
    fail_argument(format("%s: %s must be one number or %u", call.op(), name, axes));
  }
  for (uint32_t i = 0; i < axes; i++) entries[3 - axes + i] = list.value[list.count == 1 ? 0 : i];
}

// The sizes of the axes that a window slides over, of [N, C, ...].
inline void read_sizes(const pg_tensor& t, int64_t (&sizes)[3]) {
  sizes[0] = sizes[1] = sizes[2] = 1;
  for (uint32_t i = 2; i < t.rank; i++) sizes[i + 3 - t.rank] = t.shape[i];
}

inline void require_float(const KernelCall& call, uint32_t dtype) {
  if (dtype != PG_F32 && dtype != PG_F64 && dtype != PG_BF16 && dtype != PG_F16) {
    fail_support(format("%s: dtype %s is not a real float", call.op(), dtype_name(dtype)));
  }
}

}  // namespace pg::cpu
