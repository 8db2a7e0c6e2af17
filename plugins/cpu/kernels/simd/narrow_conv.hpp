// SPDX-License-Identifier: Apache-2.0
// What both ways of convolving whole numbers share: sums of products by 16 filters, and results on their way out.
#pragma once

#include "../../narrow_conv.hpp"
#include "vector.hpp"

#include <type_traits>

namespace cpu::PG_CPU_ISA {
namespace {

#if defined(__AVX2__)
// What a block's sums are made to.
struct Finish {
  const int32_t* away;  // [16], as below
  const float *scale, *bias;
  bool relu;
};

// 16 sums, and a unit of x times 16 units of filters on top of them. kWindows times kBlocks of them fit the registers.
#if defined(__AVX512F__)
struct LargeSums {
  __m512i all = _mm512_setzero_si512();
  [[gnu::always_inline]] void finish(const Finish& f, float* out) const {
    __m512 y = _mm512_cvtepi32_ps(_mm512_sub_epi32(all, _mm512_loadu_si512(f.away)));
    y = _mm512_add_ps(_mm512_mul_ps(y, _mm512_loadu_ps(f.scale)), _mm512_loadu_ps(f.bias));
    if (f.relu) y = _mm512_max_ps(_mm512_setzero_ps(), y);  // the second where one is NaN
    _mm512_storeu_ps(out, y);
  }
};
struct LargeUnits {
  static constexpr int kWindows = 12, kBlocks = 2;
  using Unit = __m512i;
  struct Filters {
    __m512i all;
    [[gnu::always_inline]] explicit Filters(const char* p) : all(_mm512_loadu_si512(p)) {}
  };
  [[gnu::always_inline]] static Unit unit(int32_t x) { return _mm512_set1_epi32(x); }
};
struct LargePairs : LargeUnits {
  static constexpr int64_t kUnit = 2;
  struct Sums : LargeSums {
    [[gnu::always_inline]] void add(Unit x, const Filters& w) {
      all = _mm512_add_epi32(all, _mm512_madd_epi16(x, w.all));
    }
  };
};
struct Bytes : LargeUnits {
  static constexpr int64_t kUnit = 4;
  struct Sums : LargeSums {
    [[gnu::always_inline]] void add(Unit x, const Filters& w) {
      // In assembly, since the rest of this file is compiled without VNNI.
      asm("vpdpbusd %2, %1, %0" : "+v"(all) : "v"(x), "v"(w.all));
    }
  };
};
#else
struct Pairs {
  static constexpr int64_t kUnit = 2;
  static constexpr int kWindows = 6, kBlocks = 1;
  using Unit = __m256i;
  struct Filters {
    Unit part[2];
    [[gnu::always_inline]] explicit Filters(const char* p)
        : part{_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
               _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))} {}
  };
  struct Sums {
    Unit part[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    [[gnu::always_inline]] void add(Unit x, const Filters& w) {
      const Unit low = _mm256_madd_epi16(x, w.part[0]), high = _mm256_madd_epi16(x, w.part[1]);
      // One window after the other: the compiler would fetch all of them first, and keep the sums in memory.
      asm volatile("vpaddd %1, %0, %0" : "+x"(part[0]) : "x"(low));
      asm volatile("vpaddd %1, %0, %0" : "+x"(part[1]) : "x"(high));
    }
    [[gnu::always_inline]] void finish(const Finish& f, float* out) const {
#pragma GCC unroll 2
      for (int half = 0; half < 2; half++) {
        const int at = 8 * half;
        const Unit away = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(f.away + at));
        __m256 y = _mm256_cvtepi32_ps(_mm256_sub_epi32(part[half], away));
        y = _mm256_add_ps(_mm256_mul_ps(y, _mm256_loadu_ps(f.scale + at)), _mm256_loadu_ps(f.bias + at));
        if (f.relu) y = _mm256_max_ps(_mm256_setzero_ps(), y);
        _mm256_storeu_ps(out + at, y);
      }
    }
  };
  [[gnu::always_inline]] static Unit unit(int32_t x) { return _mm256_set1_epi32(x); }
};
#endif

// The ways that need nothing but the instruction set.
#if defined(__AVX512F__)
using AnyPairs = LargePairs;
#else
using AnyPairs = Pairs;
#endif

[[gnu::always_inline]] inline int32_t unit_at(const char* p) {
  int32_t unit;
  __builtin_memcpy(&unit, p, sizeof unit);
  return unit;
}

// Splits `count` windows into those that are computed side by side: body(std::integral_constant, first). As few beyond
// those that there are as sums side by side allow.
template <int kMost, class Body>
[[gnu::always_inline]] inline void side_by_side(int64_t count, const Body& body) {
  constexpr int kSome = kMost * 2 / 3, kFew = kMost / 3;
  for (int64_t i = 0; i < count;) {
    const int64_t left = count - i;
    if (left <= kFew) {
      body(std::integral_constant<int, kFew>{}, i), i += kFew;
    } else if (left <= kSome || (left > kMost && left <= 2 * kSome)) {
      body(std::integral_constant<int, kSome>{}, i), i += kSome;
    } else {
      body(std::integral_constant<int, kMost>{}, i), i += kMost;
    }
  }
}

// Squares of kTurned rows, 16 apart, to columns.
#if defined(__AVX512F__)
constexpr int64_t kTurned = 16;
[[gnu::always_inline]] inline void turn(const float* from, float* to, int64_t step) {
  __m512 a[16], b[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) a[i] = _mm512_loadu_ps(from + i * kConvFilters);
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]), b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {  // a[i + k]: rows i.. i + 3 of columns k, k + 4, k + 8, k + 12
    a[i] = _mm512_shuffle_ps(b[i], b[i + 2], 0x44), a[i + 1] = _mm512_shuffle_ps(b[i], b[i + 2], 0xee);
    a[i + 2] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0x44), a[i + 3] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int k = 0; k < 4; k++) {
    b[k] = _mm512_shuffle_f32x4(a[k], a[k + 4], 0x88), b[k + 4] = _mm512_shuffle_f32x4(a[k], a[k + 4], 0xdd);
    b[k + 8] = _mm512_shuffle_f32x4(a[k + 8], a[k + 12], 0x88);
    b[k + 12] = _mm512_shuffle_f32x4(a[k + 8], a[k + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int k = 0; k < 4; k++) {
    _mm512_storeu_ps(to + k * step, _mm512_shuffle_f32x4(b[k], b[k + 8], 0x88));
    _mm512_storeu_ps(to + (k + 4) * step, _mm512_shuffle_f32x4(b[k + 4], b[k + 12], 0x88));
    _mm512_storeu_ps(to + (k + 8) * step, _mm512_shuffle_f32x4(b[k], b[k + 8], 0xdd));
    _mm512_storeu_ps(to + (k + 12) * step, _mm512_shuffle_f32x4(b[k + 4], b[k + 12], 0xdd));
  }
}
#else
constexpr int64_t kTurned = 8;
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
#endif

// `n` floats, fewer than fill a vector.
#if defined(__AVX512F__)
[[gnu::always_inline]] inline void copy_some(const float* from, int64_t n, float* to) {
  const auto there = static_cast<__mmask16>((1 << n) - 1);
  _mm512_mask_storeu_ps(to, there, _mm512_maskz_loadu_ps(there, from));
}
#else
[[gnu::always_inline]] inline void copy_some(const float* from, int64_t n, float* to) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i there = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(n)), lanes);
  _mm256_maskstore_ps(to, there, _mm256_maskload_ps(from, there));
}
#endif

constexpr int64_t kPutSlack = kTurned * kConvFilters;  // floats that put() reads behind the results, at most

// Results of `count` windows by 16 filters as lines `step` apart, a filter each.
inline void put(const float* room, int64_t count, int64_t filters, int64_t step, float* y) {
  for (int64_t i = 0; i < count; i += kTurned) {
    const int64_t across = count - i < kTurned ? count - i : kTurned;
    for (int64_t j = 0; j < filters; j += kTurned) {
      const float* from = room + i * kConvFilters + j;
      float* to = y + j * step + i;
      if (across == kTurned && filters - j >= kTurned) {
        turn(from, to, step);
        continue;
      }
      alignas(64) float square[kTurned * kTurned];
      turn(from, square, kTurned);
      const int64_t down = filters - j < kTurned ? filters - j : kTurned;
      for (int64_t k = 0; k < down; k++) {
        if (across == kTurned)
          store_vector(to + k * step, load_vector(square + k * kTurned));
        else
          copy_some(square + k * kTurned, across, to + k * step);
      }
    }
  }
}

#endif

}  // namespace
}  // namespace cpu::PG_CPU_ISA
