// SPDX-License-Identifier: Apache-2.0
// What kernels/simd/image_rows.cpp is asked to do.
#pragma once

#include <cstdint>

namespace cpu {

constexpr int kPixelBits = 22;  // of the fraction of a weight

// What each new pixel of an axis is made of: old pixels first[o] to first[o] + count[o] - 1, and `most` weights of
// which the first count[o] are its own.
struct PixelTaps {
  int64_t outputs;
  int32_t most;
  const int32_t *first, *count, *weight;  // [outputs], [outputs], [outputs][most]
};
// Rows of uint8 pixels with other columns. `columns`: of x. Rows of x lie `stride` bytes apart, those of y behind each
// other.
using PixelRowsFn = void (*)(const PixelTaps& taps, const uint8_t* x, int64_t stride, int64_t rows, int64_t columns,
                             int64_t channels, uint8_t* y);
// y[i] from weight[k] * x[k * stride + i] for k < count.
using PixelColumnFn = void (*)(const int32_t* weight, int32_t count, const uint8_t* x, int64_t stride, int64_t n,
                               uint8_t* y);
// n pixels of bytes as x * scale + shift by channel, channel c at y + c * plane.
using PixelPlanesFn = void (*)(const uint8_t* x, int64_t n, int64_t channels, const float* scale, const float* shift,
                               float* y, int64_t plane);
// y[i] = x[i] * scale[i] + shift[i].
using ByteFloatsFn = void (*)(const uint8_t* x, int64_t n, const float* scale, const float* shift, float* y);

}  // namespace cpu
