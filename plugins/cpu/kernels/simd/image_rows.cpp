// SPDX-License-Identifier: Apache-2.0
// Rows of pictures of bytes: along each, and across several. Sums are exact, and the same whatever the instruction set.
#include "../../image_rows.hpp"

#ifdef __AVX2__
#include <immintrin.h>
#endif

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

#ifdef __AVX2__

constexpr int kLowBits = 11;     // of a weight: what is above them fits into 16 bits too
constexpr int64_t kPairs = 512;  // of taps, of the outputs that are made at a time

// Pixels k and k + 1 of rows a and b, as words that stand side by side by channel; of one pixel, beside 0.
template <int kChannels>
[[gnu::always_inline]] inline __m256i load_pair(const uint8_t* a, const uint8_t* b, int64_t bytes) {
  uint64_t of_a = 0, of_b = 0;
  if (bytes == 8) {
    __builtin_memcpy(&of_a, a, 8);
    __builtin_memcpy(&of_b, b, 8);
  } else if (bytes == 6) {
    __builtin_memcpy(&of_a, a, 6);
    __builtin_memcpy(&of_b, b, 6);
  } else {
    __builtin_memcpy(&of_a, a, kChannels);
    __builtin_memcpy(&of_b, b, kChannels);
  }
  const __m128i both = _mm_set_epi64x(static_cast<int64_t>(of_b), static_cast<int64_t>(of_a));
  const __m128i order = kChannels == 3 ? _mm_setr_epi8(0, 3, 1, 4, 2, 5, -1, -1, 8, 11, 9, 12, 10, 13, -1, -1)
                                       : _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
  return _mm256_cvtepu8_epi16(_mm_shuffle_epi8(both, order));
}

// The pixel of a row, clamped to bytes: four of them, of which `bytes` are written.
template <int kChannels>
[[gnu::always_inline]] inline void store_pixel(__m128i sum, bool last, uint8_t* y) {
  const __m128i words = _mm_packs_epi32(sum, sum);
  const int32_t pixel = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
  if (last)
    __builtin_memcpy(y, &pixel, kChannels);
  else
    __builtin_memcpy(y, &pixel, 4);  // what is too much is the next pixel's place, which comes after
}

// As two_rows, two taps at a time: a weight is multiplied in two parts, whose sums are exact.
template <int kChannels>
[[gnu::always_inline]] inline void paired_rows(const PixelTaps& t, const uint8_t* x, int64_t stride, int64_t rows,
                                               int64_t columns, uint8_t* y) {
  alignas(32) int32_t high[kPairs], low[kPairs];
  const int64_t pairs = (t.most + 1) / 2, width = t.outputs * kChannels, piece = kPairs / pairs;
  for (int64_t begin = 0; begin < t.outputs; begin += piece) {
    const int64_t end = begin + piece < t.outputs ? begin + piece : t.outputs;
    for (int64_t o = begin; o < end; o++) {
      for (int64_t k = 0; k < pairs; k++) {
        const int32_t first = t.weight[o * t.most + 2 * k];
        const int32_t second = 2 * k + 1 < t.count[o] ? t.weight[o * t.most + 2 * k + 1] : 0;
        constexpr int32_t kMask = (1 << kLowBits) - 1;
        high[(o - begin) * pairs + k] = (first >> kLowBits & 0xffff) | ((second >> kLowBits) * 65536);
        low[(o - begin) * pairs + k] = (first & kMask) | (second & kMask) << 16;
      }
    }
    for (int64_t r = 0; r < rows; r += 2) {
      const int64_t other = r + 1 < rows ? r + 1 : r;
      const uint8_t *a = x + r * stride, *b = x + other * stride;
      uint8_t *ya = y + r * width, *yb = y + other * width;
      for (int64_t o = begin; o < end; o++) {
        const int64_t count = t.count[o], first = t.first[o];
        const int32_t *h = high + (o - begin) * pairs, *l = low + (o - begin) * pairs;
        __m256i top = _mm256_setzero_si256(), bottom = top;
        for (int64_t k = 0; k < count; k += 2) {
          // Behind the last pixel of a row may be the end of memory.
          const int64_t at = (first + k) * kChannels;
          const int64_t bytes = at + 8 <= columns * kChannels ? 8 : k + 2 <= count ? 6 : kChannels;
          const __m256i pixels = load_pair<kChannels>(a + at, b + at, bytes);
          top = _mm256_add_epi32(top, _mm256_madd_epi16(pixels, _mm256_set1_epi32(h[k / 2])));
          bottom = _mm256_add_epi32(bottom, _mm256_madd_epi16(pixels, _mm256_set1_epi32(l[k / 2])));
        }
        __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(top, kLowBits), bottom);
        sum = _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(kHalf)), kPixelBits);
        const bool last = o + 1 == t.outputs;
        store_pixel<kChannels>(_mm256_castsi256_si128(sum), last, ya + o * kChannels);
        store_pixel<kChannels>(_mm256_extracti128_si256(sum, 1), last, yb + o * kChannels);
      }
    }
  }
}

#endif

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
#ifdef __AVX2__
  if (t.most <= 2 * kPairs) {
    if (channels == 3) return paired_rows<3>(t, x, stride, rows, columns, y);
    return paired_rows<4>(t, x, stride, rows, columns, y);
  }
#endif
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

// y[c * plane + i] of pixel i and channel c: into floats of which each channel lies by itself.
template <int kChannels>
[[gnu::always_inline]] inline void split_pixels(const uint8_t* x, int64_t n, int64_t channels, const float* scale,
                                                const float* shift, float* y, int64_t plane) {
  constexpr int64_t kPiece = 64;
  uint8_t byte[kChannels == 0 ? 1 : kChannels][kPiece];
  const int64_t count = kChannels == 0 ? channels : kChannels;
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t m = n - begin < kPiece ? n - begin : kPiece;
    const uint8_t* from = x + begin * count;
    if (kChannels > 0) {
      PG_LOOP
      for (int64_t i = 0; i < m; i++)
        for (int c = 0; c < kChannels; c++) byte[c][i] = from[i * kChannels + c];
    }
    for (int64_t c = 0; c < count; c++) {
      if (kChannels == 0)
        for (int64_t i = 0; i < m; i++) byte[0][i] = from[i * count + c];
      const uint8_t* of_channel = byte[kChannels == 0 ? 0 : c];
      const float a = scale[c], b = shift[c];
      float* to = y + c * plane + begin;
      PG_LOOP
      for (int64_t i = 0; i < m; i++) to[i] = static_cast<float>(of_channel[i]) * a + b;
    }
  }
}

void pixel_planes(const uint8_t* x, int64_t n, int64_t channels, const float* scale, const float* shift, float* y,
                  int64_t plane) {
  switch (channels) {
    case 1: return split_pixels<1>(x, n, channels, scale, shift, y, plane);
    case 3: return split_pixels<3>(x, n, channels, scale, shift, y, plane);
    case 4: return split_pixels<4>(x, n, channels, scale, shift, y, plane);
    default: return split_pixels<0>(x, n, channels, scale, shift, y, plane);
  }
}

void byte_floats(const uint8_t* x, int64_t n, const float* scale, const float* shift, float* y) {
  PG_LOOP
  for (int64_t i = 0; i < n; i++) y[i] = static_cast<float>(x[i]) * scale[i] + shift[i];
}

}  // namespace

void fill_image_rows(Simd& table) {
  table.pixel_planes = pixel_planes;
  table.byte_floats = byte_floats;
  table.pixel_rows = pixel_rows;
  table.pixel_column = pixel_column;
}

}  // namespace cpu::PG_CPU_ISA
