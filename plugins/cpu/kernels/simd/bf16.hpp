// SPDX-License-Identifier: Apache-2.0
// Vectors of bfloat16 to and from float, a whole register of 16-bit values at a time: what pg::to_float and pg::to_bf16
// give, bit for bit.
#pragma once

#include "perigee/kernels/float16.hpp"
#include "vector.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

#if defined(__AVX2__)
// Two vectors of floats.
constexpr int64_t kPairLanes = 2 * kVectorLanes<float>;
struct FloatPair {
  Vector<float> low, high;
};

[[gnu::always_inline]] inline Vector<float> widened(const pg::bf16* from) {
#if defined(__AVX512F__)
  auto half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  __m512i wide = _mm512_maskz_cvtepu16_epi32(0xffff, half);  // g++ 12 warns of the one without a mask
#else
  __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#endif
  return (Vector<float>)((Vector<uint32_t>)wide << 16);
}
[[gnu::always_inline]] inline FloatPair widened_pair(const pg::bf16* from) {
  return {widened(from), widened(from + kVectorLanes<float>)};
}

[[gnu::always_inline]] inline Vector<uint32_t> rounded(Vector<float> x) {
  Vector<uint32_t> bits = (Vector<uint32_t>)x;
  return bits + 0x7fffu + ((bits >> 16) & 1u);
}
[[gnu::always_inline]] inline Vector<uint32_t> rounded_or_nan(Vector<float> x) {
  Vector<uint32_t> bits = (Vector<uint32_t>)x, nan = (Vector<uint32_t>)(x != x);
  return (nan & (bits | 0x400000u)) | (~nan & rounded(x));
}
[[gnu::always_inline]] inline bool has_nan(FloatPair x) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask((__m512)x.low, (__m512)x.high, _CMP_UNORD_Q) != 0;
#else
  return _mm256_movemask_ps(_mm256_cmp_ps((__m256)x.low, (__m256)x.high, _CMP_UNORD_Q)) != 0;
#endif
}
// The upper halves of the elements.
[[gnu::always_inline]] inline void store_upper(pg::bf16* to, Vector<uint32_t> low, Vector<uint32_t> high) {
#if defined(__AVX512F__)
  auto mixed = (Vector<uint64_t>)_mm512_packus_epi32((__m512i)(low >> 16), (__m512i)(high >> 16));
  auto ordered = (Vector<uint16_t>)__builtin_shufflevector(mixed, mixed, 0, 2, 4, 6, 1, 3, 5, 7);
#else
  auto mixed = (Vector<uint64_t>)_mm256_packus_epi32((__m256i)(low >> 16), (__m256i)(high >> 16));
  auto ordered = (Vector<uint16_t>)__builtin_shufflevector(mixed, mixed, 0, 2, 1, 3);
#endif
  store_vector(reinterpret_cast<uint16_t*>(to), ordered);
}
[[gnu::always_inline]] inline void store_narrowed(pg::bf16* to, FloatPair x) {
  if (__builtin_expect(has_nan(x), 0))
    store_upper(to, rounded_or_nan(x.low), rounded_or_nan(x.high));
  else
    store_upper(to, rounded(x.low), rounded(x.high));
}
#endif

}  // namespace
}  // namespace cpu::PG_CPU_ISA
