// SPDX-License-Identifier: Apache-2.0
// What the operators of quantised weights share: the formats and calls that they take, rows of small numbers as floats.
#pragma once

#include "float8.hpp"
#include "simd.hpp"
#include "storage.hpp"

namespace cpu {

enum NarrowFormat : int32_t { kInt8, kInt4, kE4M3, kE5M2 };
enum Activations : int32_t { kAsIs, kRowsInt8, kRowsUint8 };  // what x is made before it is multiplied

// All operands are dense, and what is not the weight is float32 or a 16-bit float.
inline void require_narrow_call(const pg::KernelCall& call) {
  require_all_dense(call);
  call.need_dense();
  const Storage s = storage_of(call.out(0));
  if (s != sF32 && s != sBF16 && s != sF16) refuse(call);
}

// `n` numbers times a scale, from number `first` of the row at `weight`.
inline void widen_numbers(int32_t format, const uint8_t* weight, int64_t first, int64_t n, float scale, float* out) {
  if (format <= kInt4) return simd->narrow.widen[format](weight, first, n, scale, out);
  widen_float8(kFloat8[format - kE4M3], weight, first, n, scale, out);
}

}  // namespace cpu
