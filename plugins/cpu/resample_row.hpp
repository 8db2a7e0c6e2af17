// SPDX-License-Identifier: Apache-2.0
// What kernels/simd/resample.cpp is asked to do.
#pragma once

#include <cstdint>

namespace cpu {

// A row made from another, `lanes` outputs at a time: y[o] = sum over k < taps of weight * x[base + place + k]. All
// elements that a block reads lie in one vector behind its base, and in those 1 to taps - 1 further. `width` is
// simd->resample_width; lanes from `lanes` on are padding.
struct RowBlocks {
  int64_t count;         // outputs
  int32_t lanes, taps;   // lanes is at most width
  int32_t gaps;          // some weights are 0: what they stand for does not count, not even an infinity
  const int32_t* base;   // [blocks]: base + width + taps - 1 is at most x's length
  const int32_t* place;  // [blocks][width]
  const float* weight;   // [blocks][taps][width]
};
using ResampleRowFn = void (*)(const RowBlocks& blocks, const float* x, float* y);
// y[i] = sum over k < count of weight[k] * rows[k][i], count at least 1; in float or double. y may be one
// of the rows.
using CombineRowsFn = void (*)(const void* const* rows, const void* weight, int64_t count, void* y, int64_t n);

}  // namespace cpu
