// SPDX-License-Identifier: Apache-2.0
// What rows of floats and of whole numbers share on their way through a weight of small whole numbers.
#pragma once

#include "perigee/kernels/float16.hpp"
#include "vector.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

[[gnu::always_inline]] inline float to_number(float x) { return x; }
[[gnu::always_inline]] inline float to_number(pg::bf16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// A group of x with zeros behind it, as numbers stand that share bytes of a weight: of each 2 * `bytes` those in the
// lower halves of as many bytes come first. 0 bytes: as it is.
template <int64_t bytes, class From, class To>
[[gnu::always_inline]] inline void spread(const From* from, int64_t size, int64_t padded, To* to) {
  int64_t p = 0;
  if constexpr (bytes == 0) {
    PG_LOOP
    for (int64_t i = 0; i < size; i++) to[i] = static_cast<To>(from[i]);
    p = size;
  } else {
    for (; p + 2 * bytes <= size; p += 2 * bytes) {
      PG_LOOP
      for (int64_t i = 0; i < bytes; i++) {
        to[p + i] = static_cast<To>(from[p + 2 * i]);
        to[p + bytes + i] = static_cast<To>(from[p + 2 * i + 1]);
      }
    }
    for (int64_t i = 0; i < padded - p; i++) {
      to[p + i % 2 * bytes + i / 2] = p + i < size ? static_cast<To>(from[p + i]) : To{};
    }
    return;
  }
  for (; p < padded; p++) to[p] = To{};
}

// The rows behind the last MostRows, which are 2 or 4.
template <class Tile, int MostRows, int Columns>
[[gnu::always_inline]] inline void rows_left(const NarrowRows& t, int64_t row, int64_t column) {
  if constexpr (MostRows > 2) {
    if (t.rows - row == 3) return Tile::template run<3, Columns>(t, row, column);
    if (t.rows - row == 2) return Tile::template run<2, Columns>(t, row, column);
  }
  if (t.rows - row == 1) Tile::template run<1, Columns>(t, row, column);
}

// All rows of some columns before the next ones: the weight comes from memory once, then from the nearest cache.
template <class Tile, int MostRows>
[[gnu::always_inline]] inline void each_tile(const NarrowRows& t, int64_t begin, int64_t end) {
  for (int64_t at = begin; at < end; at++) {
    const int64_t column = at * kNarrowColumns;
    if (column + kNarrowColumns <= t.columns) {
      int64_t row = 0;
      for (; row + MostRows <= t.rows; row += MostRows) Tile::template run<MostRows, kNarrowColumns>(t, row, column);
      rows_left<Tile, MostRows, kNarrowColumns>(t, row, column);
      continue;
    }
    for (int64_t j = column; j < t.columns; j++) {
      int64_t row = 0;
      for (; row + MostRows <= t.rows; row += MostRows) Tile::template run<MostRows, 1>(t, row, j);
      rows_left<Tile, MostRows, 1>(t, row, j);
    }
  }
}

}  // namespace
}  // namespace cpu::PG_CPU_ISA
