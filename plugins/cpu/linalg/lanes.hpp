// SPDX-License-Identifier: Apache-2.0
// Eight float32 side by side, as AVX2 holds them: read from and written to any real float type, and turned.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "linalg/isa.hpp"
#include "linalg/numbers.hpp"

// float16 needs F16C, and what uses it has to be compiled for it: it comes with AVX2.
#define PG_AVX2 __attribute__((target("avx2,fma,f16c")))
#define PG_AVX2_INLINE __attribute__((target("avx2,fma,f16c"), always_inline)) inline

namespace pg::cpu {

constexpr int64_t kLanes = 8;
typedef float Lanes __attribute__((vector_size(4 * kLanes)));
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));
typedef uint16_t Shorts __attribute__((vector_size(2 * kLanes)));

PG_INLINE void load_lanes(const float* from, Lanes& to) { std::memcpy(&to, from, sizeof to); }
PG_INLINE void load_lanes(const BFloat16* from, Lanes& to) {
  Shorts bits;
  std::memcpy(&bits, from, sizeof bits);
  Words wide = __builtin_convertvector(bits, Words) << 16;
  std::memcpy(&to, &wide, sizeof to);
}
PG_AVX2_INLINE void load_lanes(const Half* from, Lanes& to) {
  to = (Lanes)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

PG_INLINE void store_lanes(const Lanes& from, float* to) { std::memcpy(to, &from, sizeof from); }
// Bits of bfloat16, as to_bf16 finds them, and stored.
PG_INLINE void round_to_bf16(const Lanes& from, Words& to) {
  Words bits;
  std::memcpy(&bits, &from, sizeof bits);
  Words rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16, quiet = (bits >> 16) | 0x40u;
  to = from != from ? quiet : rounded;
}
PG_INLINE void store_bf16(const Words& bits, BFloat16* to) {
  Shorts low = __builtin_convertvector(bits, Shorts);
  std::memcpy(to, &low, sizeof low);
}
PG_INLINE void store_lanes(const Lanes& from, BFloat16* to) {
  Words bits;
  round_to_bf16(from, bits);
  store_bf16(bits, to);
}
PG_AVX2_INLINE void store_lanes(const Lanes& from, Half* to) {
  __m128i half = _mm256_cvtps_ph((__m256)from, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), half);
}

// Rows r[i][0 .. 7] become columns.
PG_INLINE void turn(Lanes (&r)[kLanes]) {
  Lanes pair[kLanes], four[kLanes];
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    pair[2 * i] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pair[2 * i + 1] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 2
  for (int half = 0; half < 2; half++) {  // rows 0 to 3, then 4 to 7
    const Lanes *first = pair + 4 * half, *second = first + 2;
    Lanes* to = four + 4 * half;
    to[0] = __builtin_shufflevector(first[0], second[0], 0, 1, 8, 9, 4, 5, 12, 13);
    to[1] = __builtin_shufflevector(first[0], second[0], 2, 3, 10, 11, 6, 7, 14, 15);
    to[2] = __builtin_shufflevector(first[1], second[1], 0, 1, 8, 9, 4, 5, 12, 13);
    to[3] = __builtin_shufflevector(first[1], second[1], 2, 3, 10, 11, 6, 7, 14, 15);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    r[i] = __builtin_shufflevector(four[i], four[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    r[i + 4] = __builtin_shufflevector(four[i], four[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

}  // namespace pg::cpu
