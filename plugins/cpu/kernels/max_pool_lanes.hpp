// SPDX-License-Identifier: Apache-2.0
// Max pooling of windows side by side, in vectors that any instruction set can be compiled for.
#pragma once

#include "kernels/window_lanes.hpp"
#include "linalg/numbers.hpp"

namespace pg::cpu::max_pool {

using window_lanes::Floats, window_lanes::kLanes, window_lanes::load_lanes, window_lanes::load_pairs;
using Ints [[gnu::vector_size(32)]] = int32_t;
using Longs [[gnu::vector_size(64)]] = int64_t;

PG_INLINE bool any(const Ints& truths) {
  int64_t parts[4], all = 0;
  std::memcpy(parts, &truths, sizeof parts);
  for (int64_t part : parts) all |= part;
  return all != 0;
}

// The same where no number is NaN: they are added to `sum`, which then is no NaN either.
template <int64_t stride>
PG_INLINE void best_of_ordered(const float* x, int64_t rows, int64_t step, int64_t taps, int64_t dilation, float* y,
                               Floats& sum) {
  Floats best, value;
  load_lanes<stride>(x, best);
  auto meet = [&](const Floats& next) __attribute__((always_inline)) {
    best = next > best ? next : best;
    sum += next;
  };
#pragma GCC unroll 3
  for (int64_t i = 0; i < rows; i++) {
    const float* row = x + i * step;
    int64_t j = 0;
    if (stride == 2 && dilation == 1 && taps > 1) {  // x[0], x[2], ... x[14] and those behind them
      Floats even, odd;
      load_pairs(row, even, odd);
      meet(even), meet(odd);
      j = 2;
    }
#pragma GCC unroll 3
    for (; j < taps; j++) {
      load_lanes<stride>(row + j * dilation, value);
      meet(value);
    }
  }
  std::memcpy(y, &best, sizeof best);
}

// `x` is where the first window begins, `first` its place in the plane. `rows` and `taps` are often known when this is
// compiled: then nothing is left of the loops over them.
template <int64_t stride, bool indexed>
PG_INLINE void best_of_lanes(const float* x, int64_t first, int64_t rows, int64_t step, int64_t taps, int64_t dilation,
                             float* y, int64_t* indices) {
  Floats best, value;
  load_lanes<stride>(x, best);
  Ints at{};
#pragma GCC unroll 3
  for (int64_t i = 0; i < rows; i++) {
#pragma GCC unroll 3
    for (int64_t j = 0; j < taps; j++) {
      if (i + j == 0) continue;
      auto here = static_cast<int32_t>(i * step + j * dilation);
      load_lanes<stride>(x + here, value);
      Ints better = (value > best) | (value != value);
      best = better ? value : best;
      if constexpr (indexed) at = better ? Ints{} + here : at;
    }
  }
  std::memcpy(y, &best, sizeof best);
  if constexpr (!indexed) return;
  Longs places = __builtin_convertvector(at, Longs) + first + stride * Longs{0, 1, 2, 3, 4, 5, 6, 7};
  std::memcpy(indices, &places, sizeof places);
}

// Eight windows of two by two that lie side by side, `width` (1, 2 or 4) in a row of the plane, of 32 numbers one
// behind the other.
template <int64_t width>
PG_INLINE void best_of_halves(const float* x, float* y) {
  auto meet = [](Floats & best, const Floats& value) __attribute__((always_inline)) {
    const Ints better = (value > best) | (value != value);
    best = better ? value : best;
  };
  Floats first, second, odd;  // the better of two neighbours in a row
  load_pairs(x, first, odd);
  meet(first, odd);
  load_pairs(x + 2 * kLanes, second, odd);
  meet(second, odd);
  Floats best, below;
  if constexpr (width == 4) {
    best = __builtin_shufflevector(first, second, 0, 1, 2, 3, 8, 9, 10, 11);
    below = __builtin_shufflevector(first, second, 4, 5, 6, 7, 12, 13, 14, 15);
  } else if constexpr (width == 2) {
    best = __builtin_shufflevector(first, second, 0, 1, 4, 5, 8, 9, 12, 13);
    below = __builtin_shufflevector(first, second, 2, 3, 6, 7, 10, 11, 14, 15);
  } else {
    best = __builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14);
    below = __builtin_shufflevector(first, second, 1, 3, 5, 7, 9, 11, 13, 15);
  }
  meet(best, below);
  std::memcpy(y, &best, sizeof best);
}

// Eight windows of bfloat16, two wide and two apart: the first of each lies in the lower half of a word, the second in
// the upper one, so both are float32 without a shuffle.
PG_INLINE void best_of_pairs(const BFloat16* x, int64_t rows, int64_t step, BFloat16* y) {
  using Words [[gnu::vector_size(32)]] = uint32_t;
  using Shorts [[gnu::vector_size(16)]] = uint16_t;
  Words best{};
  Floats most{};
  for (int64_t i = 0; i < rows; i++) {
    Words words;
    std::memcpy(&words, x + i * step, sizeof words);
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
      const Words bits = half == 0 ? words << 16 : words & 0xffff0000u;
      Floats value;
      std::memcpy(&value, &bits, sizeof value);
      const Ints better = (value > most) | (value != value);
      const bool first = i == 0 && half == 0;
      most = first ? value : better ? value : most;
      best = first ? bits : better ? bits : best;
    }
  }
  const Shorts results = __builtin_convertvector(best >> 16, Shorts);
  std::memcpy(y, &results, sizeof results);
}

}  // namespace pg::cpu::max_pool
