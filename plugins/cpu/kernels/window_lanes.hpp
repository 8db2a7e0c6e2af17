// SPDX-License-Identifier: Apache-2.0
// What kernels that slide a window load of eight windows side by side, in vectors that any instruction set can be
// compiled for.
#pragma once

#include <cstring>

#include "linalg/isa.hpp"

namespace pg::cpu::window_lanes {

constexpr int64_t kLanes = 8;
using Floats [[gnu::vector_size(32)]] = float;

// x[0], x[stride], ... x[7 stride], and nothing behind them. kStride 0: `stride` says it.
template <int64_t kStride>
PG_INLINE void load_lanes(const float* x, Floats& lanes, int64_t stride = kStride) {
  if constexpr (kStride == 0) {
    lanes = Floats{x[0],          x[stride],     x[2 * stride], x[3 * stride],
                   x[4 * stride], x[5 * stride], x[6 * stride], x[7 * stride]};
    return;
  }
  std::memcpy(&lanes, x, sizeof lanes);
  if constexpr (kStride == 1) return;
  Floats high;
  std::memcpy(&high, x + 7, sizeof high);
  lanes = __builtin_shufflevector(lanes, high, 0, 2, 4, 6, 9, 11, 13, 15);
}

// x[0], x[2], ... x[14] and those behind them.
PG_INLINE void load_pairs(const float* x, Floats& even, Floats& odd) {
  Floats low, high;
  std::memcpy(&low, x, sizeof low), std::memcpy(&high, x + kLanes, sizeof high);
  even = __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14);
  odd = __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15);
}

}  // namespace pg::cpu::window_lanes
