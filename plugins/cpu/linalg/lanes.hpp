// SPDX-License-Identifier: Apache-2.0
// Eight float32 side by side, as AVX2 holds them, or sixteen, as AVX-512 does: read from and written to real float
// types, and turned.
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

// Sixteen. Other instruction sets' code can be compiled with them, but is slow.
constexpr int64_t kWideLanes = 16;
typedef float WideLanes __attribute__((vector_size(4 * kWideLanes)));

// Words and half words, as many as there are floats.
template <class Floats>
struct BitsOf {
  using words = Words;
  using shorts = Shorts;
};
template <>
struct BitsOf<WideLanes> {
  typedef uint32_t words __attribute__((vector_size(4 * kWideLanes)));
  typedef uint16_t shorts __attribute__((vector_size(2 * kWideLanes)));
};

template <class Floats>
PG_INLINE void load_lanes(const float* from, Floats& to) {
  std::memcpy(&to, from, sizeof to);
}
template <class Floats>
PG_INLINE void load_lanes(const BFloat16* from, Floats& to) {
  typename BitsOf<Floats>::shorts bits;
  std::memcpy(&bits, from, sizeof bits);
  typename BitsOf<Floats>::words wide = __builtin_convertvector(bits, typename BitsOf<Floats>::words) << 16;
  std::memcpy(&to, &wide, sizeof to);
}
PG_AVX2_INLINE void load_lanes(const Half* from, Lanes& to) {
  to = (Lanes)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

template <class Floats>
PG_INLINE void store_lanes(const Floats& from, float* to) {
  std::memcpy(to, &from, sizeof from);
}
// Bits of bfloat16, as to_bf16 finds them, and stored.
template <class Floats>
PG_INLINE void round_to_bf16(const Floats& from, typename BitsOf<Floats>::words& to) {
  typename BitsOf<Floats>::words bits;
  std::memcpy(&bits, &from, sizeof bits);
  const auto rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16, quiet = (bits >> 16) | 0x40u;
  to = from != from ? quiet : rounded;
}
template <class Floats>
PG_INLINE void store_bf16(const typename BitsOf<Floats>::words& bits, BFloat16* to) {
  const auto low = __builtin_convertvector(bits, typename BitsOf<Floats>::shorts);
  std::memcpy(to, &low, sizeof low);
}
template <class Floats>
PG_INLINE void store_lanes(const Floats& from, BFloat16* to) {
  typename BitsOf<Floats>::words bits;
  round_to_bf16(from, bits);
  store_bf16<Floats>(bits, to);
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

// The same with sixteen rows: pairs and fours of rows within quarters of a vector, then whole quarters.
PG_INLINE void turn(WideLanes (&r)[kWideLanes]) {
  WideLanes pair[kWideLanes], four[kWideLanes];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) {
    const WideLanes &a = r[2 * i], &b = r[2 * i + 1];
    pair[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
    pair[2 * i + 1] = __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {  // rows 4 i to 4 i + 3
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
      const WideLanes &a = pair[4 * i + half], &b = pair[4 * i + 2 + half];
      WideLanes* to = four + 4 * i + 2 * half;
      to[0] = __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
      to[1] = __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {  // columns i, i + 4, i + 8 and i + 12
    const WideLanes &a = four[i], &b = four[4 + i], &c = four[8 + i], &d = four[12 + i];
    const WideLanes low = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    const WideLanes high = __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    const WideLanes more = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    const WideLanes last = __builtin_shufflevector(c, d, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    r[i] = __builtin_shufflevector(low, more, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    r[i + 4] = __builtin_shufflevector(low, more, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    r[i + 8] = __builtin_shufflevector(high, last, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    r[i + 12] = __builtin_shufflevector(high, last, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  }
}

}  // namespace pg::cpu
