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

// Two weights side by side, as words: what is above their low bits, and these.
[[gnu::always_inline]] inline void split_weights(int32_t first, int32_t second, int32_t& high, int32_t& low) {
  constexpr int32_t kMask = (1 << kLowBits) - 1;
  high = (first >> kLowBits & 0xffff) | ((second >> kLowBits) * 65536);
  low = (first & kMask) | (second & kMask) << 16;
}

// The weights of some outputs, two at a time, and where the pixels begin that they are of. All outputs have the same
// number of pairs: those with fewer taps have zeros, before or behind them, so that all pixels are of the row.
struct PairedTaps {
  alignas(32) int32_t high[kPairs], low[kPairs];
  int32_t first[kPairs];

  // Outputs from `begin` on; answers where they end.
  int64_t fill(const PixelTaps& t, int64_t begin, int64_t pairs, int64_t columns) {
    const int64_t many = begin + kPairs / pairs, end = many < t.outputs ? many : t.outputs;
    for (int64_t o = begin; o < end; o++) {
      const int64_t last = columns - 2 * pairs, at = t.first[o] < last ? t.first[o] : last, before = t.first[o] - at;
      const int32_t* weight = t.weight + o * t.most;
      const auto tap = [&](int64_t k) { return k >= before && k < before + t.count[o] ? weight[k - before] : 0; };
      first[o - begin] = static_cast<int32_t>(at);
      for (int64_t k = 0; k < pairs; k++) {
        const int64_t slot = (o - begin) * pairs + k;
        split_weights(tap(2 * k), tap(2 * k + 1), high[slot], low[slot]);
      }
    }
    return end;
  }
};

// Pixels 0 and 1 of 16 bytes in each half, as words that stand side by side by channel; behind `kFrom` pixels.
template <int kChannels, int kFrom>
[[gnu::always_inline]] inline __m256i spread_pair(__m256i rows) {
  constexpr char f = kFrom * kChannels, n = -1;
  if constexpr (kChannels == 3) {
    const __m256i order = _mm256_setr_epi8(f, n, f + 3, n, f + 1, n, f + 4, n, f + 2, n, f + 5, n, n, n, n, n, f, n,
                                           f + 3, n, f + 1, n, f + 4, n, f + 2, n, f + 5, n, n, n, n, n);
    return _mm256_shuffle_epi8(rows, order);
  } else {
    const __m256i order = _mm256_setr_epi8(f, n, f + 4, n, f + 1, n, f + 5, n, f + 2, n, f + 6, n, f + 3, n, f + 7, n,
                                           f, n, f + 4, n, f + 1, n, f + 5, n, f + 2, n, f + 6, n, f + 3, n, f + 7, n);
    return _mm256_shuffle_epi8(rows, order);
  }
}

// 16 bytes of each of two rows.
[[gnu::always_inline]] inline __m256i load_two(const uint8_t* a, const uint8_t* b) {
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), _mm_loadu_si128(reinterpret_cast<const __m128i*>(b)), 1);
}

// Sums of two rows: a weight is multiplied in two parts, whose sums are exact.
struct PairSum {
  __m256i high = _mm256_setzero_si256(), low = _mm256_set1_epi32(kHalf);
  [[gnu::always_inline]] void add(__m256i pixels, const int32_t* h, const int32_t* l) {
    high = _mm256_add_epi32(high, _mm256_madd_epi16(pixels, _mm256_set1_epi32(*h)));
    low = _mm256_add_epi32(low, _mm256_madd_epi16(pixels, _mm256_set1_epi32(*l)));
  }
  [[gnu::always_inline]] __m256i total() const {
    return _mm256_srai_epi32(_mm256_add_epi32(_mm256_slli_epi32(high, kLowBits), low), kPixelBits);
  }
};

// Four rows at a time, of which 16 bytes are read wherever a pair begins, that is up to ten bytes behind the row's end.
// kPairs: of taps, 0 for any number.
template <int kChannels, int kCount>
[[gnu::always_inline]] inline void four_rows(const PairedTaps& taps, int64_t outputs, int64_t count, const uint8_t* x,
                                             int64_t stride, uint8_t* y, int64_t width) {
  const int64_t pairs = kCount > 0 ? kCount : count;
  for (int64_t o = 0; o < outputs; o++) {
    const uint8_t* from = x + static_cast<int64_t>(taps.first[o]) * kChannels;
    const int32_t *h = taps.high + o * pairs, *l = taps.low + o * pairs;
    PairSum ab, cd;
    for (int64_t k = 0; k < pairs; k += 2, from += 4 * kChannels) {
      const __m256i of_ab = load_two(from, from + stride), of_cd = load_two(from + 2 * stride, from + 3 * stride);
      ab.add(spread_pair<kChannels, 0>(of_ab), h + k, l + k);
      cd.add(spread_pair<kChannels, 0>(of_cd), h + k, l + k);
      if (k + 1 == pairs) break;
      ab.add(spread_pair<kChannels, 2>(of_ab), h + k + 1, l + k + 1);
      cd.add(spread_pair<kChannels, 2>(of_cd), h + k + 1, l + k + 1);
    }
    // a and c lie in the lower half, b and d in the upper one.
    const __m256i words = _mm256_packs_epi32(ab.total(), cd.total());
    const __m256i bytes = _mm256_packus_epi16(words, words);
    const __m128i of_ac = _mm256_castsi256_si128(bytes), of_bd = _mm256_extracti128_si256(bytes, 1);
    const int32_t pixel[4] = {_mm_cvtsi128_si32(of_ac), _mm_cvtsi128_si32(of_bd), _mm_extract_epi32(of_ac, 1),
                              _mm_extract_epi32(of_bd, 1)};
    uint8_t* to = y + o * kChannels;
    // What is too much is the next pixel's place, which comes after.
    for (int r = 0; r < 4; r++, to += width) {
      if (o + 1 < outputs)
        __builtin_memcpy(to, &pixel[r], 4);
      else
        __builtin_memcpy(to, &pixel[r], kChannels);
    }
  }
}

// Rows but for the last ones, behind which there may be no memory; answers how many.
template <int kChannels>
[[gnu::always_inline]] inline int64_t rows_in_fours(const PixelTaps& t, const uint8_t* x, int64_t stride, int64_t rows,
                                                    int64_t columns, uint8_t* y) {
  int64_t most = 1;
  for (int64_t o = 0; o < t.outputs; o++) most = most < t.count[o] ? t.count[o] : most;
  const int64_t pairs = (most + 1) / 2, width = t.outputs * kChannels, end = (rows - 1) / 4 * 4;
  if (pairs > kPairs || columns < 2 * pairs || columns * kChannels < 16 || rows < 5) return 0;
  PairedTaps taps;
  for (int64_t begin = 0, stop; begin < t.outputs; begin = stop) {
    stop = taps.fill(t, begin, pairs, columns);
    for (int64_t r = 0; r < end; r += 4) {
      const uint8_t* from = x + r * stride;
      uint8_t* to = y + r * width + begin * kChannels;
      switch (pairs) {
        case 1: four_rows<kChannels, 1>(taps, stop - begin, 1, from, stride, to, width); break;
        case 2: four_rows<kChannels, 2>(taps, stop - begin, 2, from, stride, to, width); break;
        default: four_rows<kChannels, 0>(taps, stop - begin, pairs, from, stride, to, width);
      }
    }
  }
  return end;
}

// Two rows of weights: 16 bytes of a column each.
[[gnu::always_inline]] inline void column_block(const int32_t* high, const int32_t* low, int32_t count,
                                                const uint8_t* x, int64_t stride, uint8_t* y) {
  PairSum left, right;
  for (int32_t k = 0; k < count; k += 2, x += 2 * stride) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
    const __m128i b = k + 1 < count ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + stride)) : a;
    left.add(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)), high + k / 2, low + k / 2);
    right.add(_mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b)), high + k / 2, low + k / 2);
  }
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(left.total(), right.total()), 0b11011000);
  const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(y), bytes);
}

// false: of too many rows, or too few bytes.
[[gnu::always_inline]] inline bool column_in_blocks(const int32_t* weight, int32_t count, const uint8_t* x,
                                                    int64_t stride, int64_t n, uint8_t* y) {
  constexpr int32_t kMost = 64;
  if (count > kMost || n < 16) return false;
  int32_t high[kMost / 2], low[kMost / 2];
  for (int32_t k = 0; k < count; k += 2)
    split_weights(weight[k], k + 1 < count ? weight[k + 1] : 0, high[k / 2], low[k / 2]);
  for (int64_t i = 0; i + 16 <= n; i += 16) column_block(high, low, count, x + i, stride, y + i);
  if (n % 16 != 0) column_block(high, low, count, x + n - 16, stride, y + n - 16);
  return true;
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
  int64_t done = 0;
#ifdef __AVX2__
  done = channels == 3 ? rows_in_fours<3>(t, x, stride, rows, columns, y)
                       : rows_in_fours<4>(t, x, stride, rows, columns, y);
#endif
  for (int64_t r = done; r < rows; r += 2) {
    const int64_t other = r + 1 < rows ? r + 1 : r;
    if (channels == 3)
      two_rows<3>(t, x + r * stride, x + other * stride, columns, y + r * width, y + other * width);
    else
      two_rows<4>(t, x + r * stride, x + other * stride, columns, y + r * width, y + other * width);
  }
}

void pixel_column(const int32_t* weight, int32_t count, const uint8_t* x, int64_t stride, int64_t n, uint8_t* y) {
#ifdef __AVX2__
  if (column_in_blocks(weight, count, x, stride, n, y)) return;
#endif
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
