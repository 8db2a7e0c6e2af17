// SPDX-License-Identifier: Apache-2.0
// Rows of small numbers as floats, in each format that the operators of quantised weights know.
#pragma once

#include "float8.hpp"
#include "simd.hpp"

namespace cpu {

enum NarrowFormat : int32_t { kInt8, kInt4, kE4M3, kE5M2 };

// `n` numbers times a scale, from number `first` of the row at `weight`.
inline void widen_numbers(int32_t format, const uint8_t* weight, int64_t first, int64_t n, float scale, float* out) {
  if (format <= kInt4) return simd->narrow.widen[format](weight, first, n, scale, out);
  widen_float8(kFloat8[format - kE4M3], weight, first, n, scale, out);
}

}  // namespace cpu
