// SPDX-License-Identifier: Apache-2.0
// Conversions of 16-bit and 8-bit floats, selection, repetition, and stores past the caches.
#include <cstring>

#include "bf16.hpp"
#include "perigee/kernels/float8.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

// Elements of a cache line of 16-bit floats, and how far ahead to ask for one. Most of the time goes into reading what
// has left the caches: the hardware looks ahead no further than a page.
constexpr int64_t kLine = 32, kAhead = 1024;

void widen_f16(const void* source, void* target, int64_t n) {
  const pg::f16* s = static_cast<const pg::f16*>(source);
  float* t = static_cast<float*>(target);
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(t + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(s + i))));
  }
#endif
  PG_LOOP
  for (int64_t k = i; k < n; k++) t[k] = pg::to_float(s[k]);
}

void widen_bf16(const void* source, void* target, int64_t n) {
  const pg::bf16* s = static_cast<const pg::bf16*>(source);
  float* t = static_cast<float*>(target);
  int64_t i = 0;
#if defined(__AVX2__)
  for (; i + kLine <= n; i += kLine) {
    __builtin_prefetch(s + i + kAhead);
#pragma GCC unroll 4
    for (int64_t k = i; k < i + kLine; k += kVectorLanes<float>) store_vector(t + k, widened(s + k));
  }
#endif
  PG_LOOP
  for (int64_t k = i; k < n; k++) t[k] = pg::to_float(s[k]);
}

void narrow_f16(const void* source, void* target, int64_t n) {
  const float* s = static_cast<const float*>(source);
  pg::f16* t = static_cast<pg::f16*>(target);
  int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(s + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(t + i), half);
  }
#endif
  for (; i < n; i++) t[i] = pg::to_f16(s[i]);
}

void narrow_bf16(const void* source, void* target, int64_t n) {
  const float* s = static_cast<const float*>(source);
  pg::bf16* t = static_cast<pg::bf16*>(target);
  int64_t i = 0;
#if defined(__AVX2__)
  for (; i + kLine <= n; i += kLine) {
    __builtin_prefetch(s + i + kAhead);
    __builtin_prefetch(s + i + kAhead + kLine / 2);
#pragma GCC unroll 2
    for (int64_t k = i; k < i + kLine; k += kPairLanes) {
      store_narrowed(t + k, {load_vector(s + k), load_vector(s + k + kVectorLanes<float>)});
    }
  }
#endif
  PG_LOOP
  for (int64_t k = i; k < n; k++) t[k] = pg::to_bf16(s[k]);
}

template <class T>
void select(const uint8_t* condition, const void* x, const void* y, void* out, int64_t n) {
  const T *a = static_cast<const T*>(x), *b = static_cast<const T*>(y);
  T* o = static_cast<T*>(out);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) {
    T from_a = a[i], from_b = b[i];
    o[i] = condition[i] != 0 ? from_a : from_b;
  }
}

// In vectors of 32 bytes: what they write behind a row's end is the next row's to write again, so the last rows, which
// have no room for it, go by elements.
template <class E>
void repeat(const void* source, int64_t step, int64_t rows, int64_t times, void* target) {
  typedef E Elements __attribute__((vector_size(32), aligned(sizeof(E)), may_alias));
  constexpr int64_t kLanes = 32 / sizeof(E);
  const E* s = static_cast<const E*>(source);
  E *t = static_cast<E*>(target), *end = t + rows * times;
  int64_t room = (times + kLanes - 1) / kLanes * kLanes;
  for (; end - t >= room; t += times, s += step) {
    Elements e = Elements{} + *s;
    for (int64_t j = 0; j < times; j += kLanes) *reinterpret_cast<Elements*>(t + j) = e;
  }
  for (; t < end; t += times, s += step) {
    for (int64_t j = 0; j < times; j++) t[j] = *s;
  }
}

#if defined(__AVX2__)
void stream_copy(void* target, const void* source, int64_t bytes) {
  char* t = static_cast<char*>(target);
  const char* s = static_cast<const char*>(source);
  int64_t head = static_cast<int64_t>((32 - reinterpret_cast<uintptr_t>(t) % 32) % 32);
  if (head > bytes) head = bytes;
  memcpy(t, s, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + 128 <= bytes; i += 128) {
    __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + i));
    __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + i + 32));
    __m256i c = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + i + 64));
    __m256i d = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + i + 96));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(t + i), a);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(t + i + 32), b);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(t + i + 64), c);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(t + i + 96), d);
  }
  memcpy(t + i, s + i, static_cast<size_t>(bytes - i));
}
void stream_fence() { _mm_sfence(); }
#else
void stream_copy(void* target, const void* source, int64_t bytes) {
  memcpy(target, source, static_cast<size_t>(bytes));
}
void stream_fence() {}
#endif

template <class From>
void widen_float8(const void* source, void* target, int64_t n) {
  const From* s = static_cast<const From*>(source);
  float* t = static_cast<float*>(target);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) t[i] = pg::to_float(s[i]);
}
template <auto narrow>
void narrow_float8(const void* source, void* target, int64_t n) {
  const float* s = static_cast<const float*>(source);
  auto* t = static_cast<decltype(narrow(0.0F))*>(target);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) t[i] = narrow(s[i]);
}

}  // namespace

void fill_move(Simd& table) {
  table.f16_to_f32 = widen_f16;
  table.bf16_to_f32 = widen_bf16;
  table.f32_to_f16 = narrow_f16;
  table.f32_to_bf16 = narrow_bf16;
  table.e4m3fn_to_f32 = widen_float8<pg::f8e4m3fn>;
  table.e5m2_to_f32 = widen_float8<pg::f8e5m2>;
  table.f32_to_e4m3fn = narrow_float8<pg::to_f8e4m3fn>;
  table.f32_to_e5m2 = narrow_float8<pg::to_f8e5m2>;
  table.select[0] = select<uint8_t>;
  table.select[1] = select<uint16_t>;
  table.select[2] = select<uint32_t>;
  table.select[3] = select<uint64_t>;
  table.repeat[0] = repeat<uint8_t>;
  table.repeat[1] = repeat<uint16_t>;
  table.repeat[2] = repeat<uint32_t>;
  table.repeat[3] = repeat<uint64_t>;
  table.stream_copy = stream_copy;
  table.stream_fence = stream_fence;
}

}  // namespace cpu::PG_CPU_ISA
