// SPDX-License-Identifier: Apache-2.0
// Convolutions of whole numbers: products of unsigned bytes by signed ones where the processor has them (VNNI), else of
// pairs of 16-bit numbers.
#include "../../narrow_conv.hpp"
#include "vector.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

#if defined(__AVX2__)
// 16 sums, and a unit of x times 16 units of filters on top of them.
#if defined(__AVX512F__)
struct LargePairs {
  static constexpr int64_t kUnit = 2;
  static constexpr int kWindows = 12;
  struct Filters {
    __m512i all;
    [[gnu::always_inline]] explicit Filters(const int8_t* p)
        : all(_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))) {}
  };
  struct Sums {
    __m512i all = _mm512_setzero_si512();
    [[gnu::always_inline]] void add(int32_t x, const Filters& w) {
      all = _mm512_add_epi32(all, _mm512_madd_epi16(_mm512_set1_epi32(x), w.all));
    }
    [[gnu::always_inline]] __m256i half(int i) const {
      return i == 0 ? _mm512_castsi512_si256(all) : _mm512_extracti64x4_epi64(all, 1);
    }
  };
};
struct Bytes {
  static constexpr int64_t kUnit = 4;
  static constexpr int kWindows = 12;
  struct Filters {
    __m512i all;
    [[gnu::always_inline]] explicit Filters(const int8_t* p) : all(_mm512_loadu_si512(p)) {}
  };
  struct Sums {
    __m512i all = _mm512_setzero_si512();
    [[gnu::always_inline]] void add(int32_t x, const Filters& w) {
      // In assembly, since the rest of this file is compiled without VNNI.
      asm("vpdpbusd %2, %1, %0" : "+v"(all) : "v"(_mm512_set1_epi32(x)), "v"(w.all));
    }
    [[gnu::always_inline]] __m256i half(int i) const {
      return i == 0 ? _mm512_castsi512_si256(all) : _mm512_extracti64x4_epi64(all, 1);
    }
  };
};
#else
struct Pairs {
  static constexpr int64_t kUnit = 2;
  using Whole = __m256i;
  static constexpr int kWindows = 6;
  struct Filters {
    Whole part[2];
    [[gnu::always_inline]] explicit Filters(const int8_t* p)
        : part{_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
               _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16)))} {}
  };
  struct Sums {
    Whole part[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    [[gnu::always_inline]] void add(int32_t x, const Filters& w) {
      const Whole unit = _mm256_set1_epi32(x);
      const Whole low = _mm256_madd_epi16(unit, w.part[0]), high = _mm256_madd_epi16(unit, w.part[1]);
      // One window after the other: the compiler would fetch all of them first, and keep the sums in memory.
      asm volatile("vpaddd %1, %0, %0" : "+x"(part[0]) : "x"(low));
      asm volatile("vpaddd %1, %0, %0" : "+x"(part[1]) : "x"(high));
    }
    [[gnu::always_inline]] Whole half(int i) const { return part[i]; }
  };
};
#endif

[[gnu::always_inline]] inline int32_t unit_at(const char* p) {
  int32_t unit;
  __builtin_memcpy(&unit, p, sizeof unit);
  return unit;
}

// t.room[i][j]: results of windows from `first` on.
template <class Way>
[[gnu::always_inline]] inline void windows(const NarrowConvTile& t, int64_t first, const float* scale,
                                           const float* bias, const int32_t* away) {
  constexpr int kWindows = Way::kWindows;
  typename Way::Sums sums[kWindows];
  const int8_t* weight = t.weight;
  for (int64_t r = 0; r < t.runs; r++) {
    const char* x[kWindows];
#pragma GCC unroll 16
    for (int i = 0; i < kWindows; i++) x[i] = t.x + t.window[first + i] + t.run[r];
    for (int64_t u = 0; u < t.units; u++, weight += kConvFilters * Way::kUnit) {
      const typename Way::Filters w(weight);
#pragma GCC unroll 16
      for (int i = 0; i < kWindows; i++) sums[i].add(unit_at(x[i] + 4 * u), w);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kWindows; i++) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
      const __m256i whole =
          _mm256_sub_epi32(sums[i].half(half), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(away + 8 * half)));
      __m256 y = _mm256_mul_ps(_mm256_cvtepi32_ps(whole), _mm256_loadu_ps(scale + 8 * half));
      y = _mm256_add_ps(y, _mm256_loadu_ps(bias + 8 * half));
      if (t.relu) y = _mm256_max_ps(_mm256_setzero_ps(), y);  // the second where one is NaN
      _mm256_storeu_ps(t.room + (first + i) * kConvFilters + 8 * half, y);
    }
  }
}

// Eight rows of eight, 16 apart, to columns.
[[gnu::always_inline]] inline void turn(const float* from, float* to, int64_t step) {
  __m256 a[8], b[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) a[i] = _mm256_loadu_ps(from + i * kConvFilters);
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]), b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44), a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
    a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44), a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    _mm256_storeu_ps(to + i * step, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * step, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
  }
}

template <class Way>
void multiply(const NarrowConvTile& t) {
  float scale[kConvFilters] = {}, bias[kConvFilters] = {};
  int32_t away[kConvFilters];
  for (int64_t j = 0; j < t.filters; j++) {
    scale[j] = t.scale[j] * t.x_scale;
    if (t.bias != nullptr) bias[j] = t.bias[j];
  }
  for (int64_t j = 0; j < kConvFilters; j++) away[j] = t.zero * t.sum[j];
  for (int64_t i = 0; i < t.count; i += Way::kWindows) windows<Way>(t, i, scale, bias, away);
  int64_t i = 0;
  for (; i + 8 <= t.kept; i += 8) {
    int64_t j = 0;
    for (; j + 8 <= t.filters; j += 8) turn(t.room + i * kConvFilters + j, t.y + j * t.step + i, t.step);
    for (; j < t.filters; j++) {
      for (int64_t k = i; k < i + 8; k++) t.y[j * t.step + k] = t.room[k * kConvFilters + j];
    }
  }
  for (int64_t j = 0; j < t.filters; j++) {
    for (int64_t k = i; k < t.kept; k++) t.y[j * t.step + k] = t.room[k * kConvFilters + j];
  }
}

constexpr int64_t kPiece = 64;  // of a line that are worked on at a time
[[gnu::always_inline]] inline void whole_piece(const float* x, int64_t n, const WholeRow& how, int32_t plus,
                                               int16_t* out) {
  const WholeRow row = how;
  PG_LOOP
  for (int64_t i = 0; i < n; i++) out[i] = static_cast<int16_t>(static_cast<int32_t>(row.whole(x[i])) + plus);
}

// Eight numbers of eight lines, kPiece apart, as eight of eight channels, `channels` apart.
template <class T>
[[gnu::always_inline]] inline void turn_whole(const int16_t* lines, int64_t channels, T* out) {
  __m128i a[8], b[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) a[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(lines + i * kPiece));
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    b[2 * i] = _mm_unpacklo_epi16(a[2 * i], a[2 * i + 1]), b[2 * i + 1] = _mm_unpackhi_epi16(a[2 * i], a[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    a[i] = _mm_unpacklo_epi32(b[i], b[i + 2]), a[i + 1] = _mm_unpackhi_epi32(b[i], b[i + 2]);
    a[i + 2] = _mm_unpacklo_epi32(b[i + 1], b[i + 3]), a[i + 3] = _mm_unpackhi_epi32(b[i + 1], b[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    b[2 * i] = _mm_unpacklo_epi64(a[i], a[i + 4]), b[2 * i + 1] = _mm_unpackhi_epi64(a[i], a[i + 4]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) {
    auto* to = reinterpret_cast<__m128i*>(out + i * channels);
    if constexpr (sizeof(T) == 2)
      _mm_storeu_si128(to, b[i]);
    else
      _mm_storel_epi64(to, _mm_packus_epi16(b[i], b[i]));
  }
}

template <class T>
void lay_out(const float* x, int64_t step, int64_t channels, int64_t width, const WholeRow& how, int32_t plus,
             void* target) {
  auto* out = static_cast<T*>(target);
  int16_t lines[8 * kPiece] = {};
  for (int64_t at = 0; at < width; at += kPiece) {
    const int64_t n = width - at < kPiece ? width - at : kPiece;
    for (int64_t c = 0; c < channels; c += 8) {
      const int64_t count = channels - c < 8 ? channels - c : 8;
      for (int64_t k = 0; k < count; k++) whole_piece(x + (c + k) * step + at, n, how, plus, lines + k * kPiece);
      T* to = out + at * channels + c;
      int64_t i = 0;
      if (count == 8) {
        for (; i + 8 <= n; i += 8) turn_whole(lines + i, channels, to + i * channels);
      }
      for (int64_t k = 0; k < count; k++) {
        for (int64_t p = i; p < n; p++) to[p * channels + k] = static_cast<T>(lines[k * kPiece + p]);
      }
    }
  }
}
#endif

}  // namespace

NarrowConvLoop make_narrow_conv() {
#if defined(__AVX512F__)
  if (has_vnni()) return {Bytes::kUnit, Bytes::kWindows, multiply<Bytes>, lay_out<uint8_t>};
  return {LargePairs::kUnit, LargePairs::kWindows, multiply<LargePairs>, lay_out<int16_t>};
#elif defined(__AVX2__)
  return {Pairs::kUnit, Pairs::kWindows, multiply<Pairs>, lay_out<int16_t>};
#else
  return {};
#endif
}

}  // namespace cpu::PG_CPU_ISA
