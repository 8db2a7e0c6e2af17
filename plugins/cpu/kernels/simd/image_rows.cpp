// SPDX-License-Identifier: Apache-2.0
// Rows of pictures of bytes: along each, and across several. Sums are exact, and the same whatever the instruction set.
#include "../../image_rows.hpp"

#include "loop.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

constexpr int32_t kHalf = 1 << (kPixelBits - 1);

[[gnu::always_inline]] inline uint8_t byte_of(int32_t sum) {
  const int32_t v = sum >> kPixelBits;
  return static_cast<uint8_t>(v < 0 ? 0 : v > 255 ? 255 : v);
}

using Bytes = uint8_t __attribute__((vector_size(8)));
using Lanes = int32_t __attribute__((vector_size(32)));

// Pixel a and pixel b, of up to four channels: `bytes` of each are read.
[[gnu::always_inline]] inline Lanes load_pixels(const uint8_t* a, const uint8_t* b, bool whole) {
  uint32_t pixel[2] = {};
  if (whole) {
    __builtin_memcpy(&pixel[0], a, 4);
    __builtin_memcpy(&pixel[1], b, 4);
  } else {
    __builtin_memcpy(&pixel[0], a, 3);
    __builtin_memcpy(&pixel[1], b, 3);
  }
  Bytes bytes;
  __builtin_memcpy(&bytes, pixel, 8);
  return __builtin_convertvector(bytes, Lanes);
}

// Two rows at a time, of three or four channels. The last pixel of a row of three is read by itself: behind it may be
// the end of memory.
template <int kChannels>
[[gnu::always_inline]] inline void two_rows(const PixelTaps& t, const uint8_t* a, const uint8_t* b, int64_t columns,
                                            uint8_t* ya, uint8_t* yb) {
  for (int64_t o = 0; o < t.outputs; o++) {
    const int32_t* weight = t.weight + o * t.most;
    const int64_t first = t.first[o], count = t.count[o];
    const bool at_end = kChannels == 3 && first + count == columns;
    const uint8_t *from_a = a + first * kChannels, *from_b = b + first * kChannels;
    Lanes sum = {kHalf, kHalf, kHalf, kHalf, kHalf, kHalf, kHalf, kHalf};
    int64_t k = 0;
    for (; k < count - (at_end ? 1 : 0); k++)
      sum += load_pixels(from_a + k * kChannels, from_b + k * kChannels, true) * weight[k];
    if (at_end) sum += load_pixels(from_a + k * kChannels, from_b + k * kChannels, false) * weight[k];
    for (int c = 0; c < kChannels; c++) {
      ya[o * kChannels + c] = byte_of(sum[c]);
      yb[o * kChannels + c] = byte_of(sum[4 + c]);
    }
  }
}

[[gnu::always_inline]] inline void any_row(const PixelTaps& t, const uint8_t* x, int64_t channels, uint8_t* y) {
  for (int64_t o = 0; o < t.outputs; o++) {
    const int32_t* weight = t.weight + o * t.most;
    for (int64_t c = 0; c < channels; c++) {
      const uint8_t* from = x + t.first[o] * channels + c;
      int32_t sum = kHalf;
      for (int32_t k = 0; k < t.count[o]; k++) sum += weight[k] * from[k * channels];
      y[o * channels + c] = byte_of(sum);
    }
  }
}

void pixel_rows(const PixelTaps& t, const uint8_t* x, int64_t stride, int64_t rows, int64_t columns, int64_t channels,
                uint8_t* y) {
  const int64_t width = t.outputs * channels;
  if (channels != 3 && channels != 4) {
    for (int64_t r = 0; r < rows; r++) {
      if (channels == 1)
        any_row(t, x + r * stride, 1, y + r * width);
      else
        any_row(t, x + r * stride, channels, y + r * width);
    }
    return;
  }
  for (int64_t r = 0; r < rows; r += 2) {
    const int64_t other = r + 1 < rows ? r + 1 : r;
    if (channels == 3)
      two_rows<3>(t, x + r * stride, x + other * stride, columns, y + r * width, y + other * width);
    else
      two_rows<4>(t, x + r * stride, x + other * stride, columns, y + r * width, y + other * width);
  }
}

void pixel_column(const int32_t* weight, int32_t count, const uint8_t* x, int64_t stride, int64_t n, uint8_t* y) {
  constexpr int64_t kPiece = 256;
  int32_t sum[kPiece];
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t m = n - begin < kPiece ? n - begin : kPiece;
    for (int64_t i = 0; i < m; i++) sum[i] = kHalf;
    for (int32_t k = 0; k < count; k++) {
      const uint8_t* from = x + k * stride + begin;
      const int32_t w = weight[k];
      PG_LOOP
      for (int64_t i = 0; i < m; i++) sum[i] += w * from[i];
    }
    PG_LOOP
    for (int64_t i = 0; i < m; i++) y[begin + i] = byte_of(sum[i]);
  }
}

}  // namespace

void fill_image_rows(Simd& table) {
  table.pixel_rows = pixel_rows;
  table.pixel_column = pixel_column;
}

}  // namespace cpu::PG_CPU_ISA
