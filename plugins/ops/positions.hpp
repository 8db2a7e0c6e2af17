// SPDX-License-Identifier: Apache-2.0
// Rows of positions, for decompositions.
#pragma once

#include "rules.hpp"

namespace pg {

// 0, step, 2 step, ...: n int64 numbers on the device of `like`, whatever the scope says.
inline Value positions(Value like, int64_t n, int64_t step = 1) {
  static constinit OpRef numbers("arange", "count", "dtype", "step"), transfer("transfer", "device");
  Value row = Call(like.builder, numbers).set(0, make_ints({n})).set(1, PG_I64).set(2, step).emit();
  if (row.device() == like.device()) return row;
  return Call(like.builder, transfer).input(row).set(0, like.device()).emit();
}

// A plain size; decompositions cannot go on without.
inline int64_t known(int64_t dim) {
  if (PG_DIM_IS_SYMBOLIC(dim)) fail_support("a size is not known yet");
  return dim;
}

}  // namespace pg
