// SPDX-License-Identifier: Apache-2.0
// Dense lines into tiles and back. A tile holds kLines<T> lines turned, side by side: element c of line r lies at
// tile[c * kLines<T> + r], so that vectors run across the lines, whatever their length.
#pragma once

#include "vector.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

// What is turned at once: kSide lines, of which a strip of 16 bytes.
template <class T>
constexpr int kSide = 32 / static_cast<int>(sizeof(T));
template <class T>
constexpr int kStrip = 16 / static_cast<int>(sizeof(T));

#if defined(__AVX2__)
// The halves as matrices, turned, by themselves.
[[gnu::always_inline]] inline void turn_halves(__m256 (&v)[4]) {
  __m256 a = _mm256_unpacklo_ps(v[0], v[1]), b = _mm256_unpackhi_ps(v[0], v[1]);
  __m256 c = _mm256_unpacklo_ps(v[2], v[3]), d = _mm256_unpackhi_ps(v[2], v[3]);
  v[0] = _mm256_shuffle_ps(a, c, 0x44);
  v[1] = _mm256_shuffle_ps(a, c, 0xee);
  v[2] = _mm256_shuffle_ps(b, d, 0x44);
  v[3] = _mm256_shuffle_ps(b, d, 0xee);
}
[[gnu::always_inline]] inline void turn_halves(__m256d (&v)[2]) {
  __m256d a = _mm256_unpacklo_pd(v[0], v[1]);
  v[1] = _mm256_unpackhi_pd(v[0], v[1]);
  v[0] = a;
}
[[gnu::always_inline]] inline __m256 load(const float* from) { return _mm256_loadu_ps(from); }
[[gnu::always_inline]] inline __m256d load(const double* from) { return _mm256_loadu_pd(from); }
[[gnu::always_inline]] inline void store(float* to, __m256 v) { _mm256_storeu_ps(to, v); }
[[gnu::always_inline]] inline void store(double* to, __m256d v) { _mm256_storeu_pd(to, v); }
[[gnu::always_inline]] inline void store_low(float* to, __m256 v) { _mm_storeu_ps(to, _mm256_castps256_ps128(v)); }
[[gnu::always_inline]] inline void store_high(float* to, __m256 v) { _mm_storeu_ps(to, _mm256_extractf128_ps(v, 1)); }
[[gnu::always_inline]] inline void store_low(double* to, __m256d v) { _mm_storeu_pd(to, _mm256_castpd256_pd128(v)); }
[[gnu::always_inline]] inline void store_high(double* to, __m256d v) { _mm_storeu_pd(to, _mm256_extractf128_pd(v, 1)); }
// The first N elements of a strip, and zeros.
template <int N>
[[gnu::always_inline]] inline __m128 load_strip(const float* from) {
  if constexpr (N == 4) return _mm_loadu_ps(from);
  return _mm_maskload_ps(from, _mm_setr_epi32(-1, N > 1 ? -1 : 0, N > 2 ? -1 : 0, 0));
}
template <int N>
[[gnu::always_inline]] inline __m128d load_strip(const double* from) {
  return N == 2 ? _mm_loadu_pd(from) : _mm_load_sd(from);
}
[[gnu::always_inline]] inline __m256 join(__m128 low, __m128 high) { return _mm256_set_m128(high, low); }
[[gnu::always_inline]] inline __m256d join(__m128d low, __m128d high) { return _mm256_set_m128d(high, low); }

// N columns, at most a strip, of kSide lines that are `n` elements long.
template <int N, class T>
[[gnu::always_inline]] inline void strip_in(const T* lines, int64_t n, T* tile) {
  decltype(load(lines)) v[kStrip<T>];
#pragma GCC unroll 4
  for (int i = 0; i < kStrip<T>; i++)
    v[i] = join(load_strip<N>(lines + i * n), load_strip<N>(lines + (i + kStrip<T>)*n));
  turn_halves(v);
#pragma GCC unroll 4
  for (int i = 0; i < N; i++) store(tile + i * kLines<T>, v[i]);
}
// Whole strips are written: behind fewer columns, what the next line has to write again.
template <int N, class T>
[[gnu::always_inline]] inline void strip_out(const T* tile, int64_t n, T* lines) {
  decltype(load(tile)) v[kStrip<T>] = {};
#pragma GCC unroll 4
  for (int i = 0; i < N; i++) v[i] = load(tile + i * kLines<T>);
  turn_halves(v);
#pragma GCC unroll 4
  for (int i = 0; i < kStrip<T>; i++) store_low(lines + i * n, v[i]);
#pragma GCC unroll 4
  for (int i = 0; i < kStrip<T>; i++) store_high(lines + (i + kStrip<T>)*n, v[i]);
}
#else
template <int N, class T>
[[gnu::always_inline]] inline void strip_in(const T* lines, int64_t n, T* tile) {
  for (int r = 0; r < kSide<T>; r++) {
    for (int c = 0; c < N; c++) tile[c * kLines<T> + r] = lines[r * n + c];
  }
}
template <int N, class T>
[[gnu::always_inline]] inline void strip_out(const T* tile, int64_t n, T* lines) {
  for (int r = 0; r < kSide<T>; r++) {
    for (int c = 0; c < N; c++) lines[r * n + c] = tile[c * kLines<T> + r];
  }
}
#endif

// Lines of N elements, fewer than a strip has.
template <int N, class T>
void turn_few_in(const T* lines, T* tile) {
  for (int64_t r = 0; r < kLines<T>; r += kSide<T>) strip_in<N>(lines + r * N, N, tile + r);
}
template <int N, class T>
void turn_few_out(const T* tile, T* lines) {
  constexpr int64_t last = kLines<T> - kSide<T>;
  for (int64_t r = 0; r < last; r += kSide<T>) strip_out<N>(tile + r, N, lines + r * N);
  T room[kSide<T> * N + kStrip<T>];
  strip_out<N>(tile + last, N, room);
  __builtin_memcpy(lines + last * N, room, sizeof(T) * kSide<T> * N);
}

// Behind the last whole strip stands one that ends with the line, whose first columns are turned twice.
template <class T>
void turn_all_in(const T* lines, int64_t n, T* tile) {
  if (n == 1) return turn_few_in<1>(lines, tile);
  if constexpr (kStrip < T >> 2) {
    if (n == 2) return turn_few_in<2>(lines, tile);
    if (n == 3) return turn_few_in<3>(lines, tile);
  }
  for (int64_t r = 0; r < kLines<T>; r += kSide<T>) {
    const T* from = lines + r * n;
    int64_t c = 0;
    for (; c + kStrip<T> <= n; c += kStrip<T>) strip_in<kStrip<T>>(from + c, n, tile + c * kLines<T> + r);
    if (c < n) strip_in<kStrip<T>>(from + n - kStrip<T>, n, tile + (n - kStrip<T>)*kLines<T> + r);
  }
}
template <class T>
void turn_all_out(const T* tile, int64_t n, T* lines) {
  if (n == 1) return turn_few_out<1>(tile, lines);
  if constexpr (kStrip < T >> 2) {
    if (n == 2) return turn_few_out<2>(tile, lines);
    if (n == 3) return turn_few_out<3>(tile, lines);
  }
  for (int64_t r = 0; r < kLines<T>; r += kSide<T>) {
    T* to = lines + r * n;
    int64_t c = 0;
    for (; c + kStrip<T> <= n; c += kStrip<T>) strip_out<kStrip<T>>(tile + c * kLines<T> + r, n, to + c);
    if (c < n) strip_out<kStrip<T>>(tile + (n - kStrip<T>)*kLines<T> + r, n, to + n - kStrip<T>);
  }
}

template <class T>
void turn_in(const void* lines, int64_t count, int64_t n, void* tile) {
  const T* from = static_cast<const T*>(lines);
  T* to = static_cast<T*>(tile);
  if (count == kLines<T>) {
    // The hardware looks ahead while memory is read, which stops while the tile is worked on: asked for is the next
    // one.
    for (int64_t i = 0; i < kLines<T> * n; i += 64 / static_cast<int64_t>(sizeof(T)))
      __builtin_prefetch(from + kLines<T> * n + i);
    return turn_all_in(from, n, to);
  }
  alignas(64) T block[kShortLine * kLines<T>];
  __builtin_memcpy(block, from, static_cast<size_t>(count * n) * sizeof(T));
  __builtin_memset(block + count * n, 0, static_cast<size_t>((kLines<T> - count) * n) * sizeof(T));
  turn_all_in(block, n, to);
}
template <class T>
void turn_out(const void* tile, int64_t count, int64_t n, void* lines) {
  const T* from = static_cast<const T*>(tile);
  if (count == kLines<T>) return turn_all_out(from, n, static_cast<T*>(lines));
  alignas(64) T block[kShortLine * kLines<T>];
  turn_all_out(from, n, block);
  __builtin_memcpy(lines, block, static_cast<size_t>(count * n) * sizeof(T));
}

}  // namespace
}  // namespace cpu::PG_CPU_ISA
