// SPDX-License-Identifier: Apache-2.0
// Dense lines into tiles and back. A tile holds kLines<T> lines turned, side by side: element c of line r lies at
// tile[c * kLines<T> + r], so that vectors run across the lines, whatever their length.
#pragma once

#include "vector.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

template <class T>
constexpr int kSquare = 32 / static_cast<int>(sizeof(T));  // rows and columns that are turned at once

#if defined(__AVX2__)
// Eight vectors of eight floats, four of four doubles: as a matrix, turned.
[[gnu::always_inline]] inline void turn_vectors(__m256 (&v)[8]) {
  __m256 a[8], b[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    v[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
    v[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
  }
}
// Two matrices of four floats, one in each half.
[[gnu::always_inline]] inline void turn_halves(__m256 (&v)[4]) {
  __m256 a = _mm256_unpacklo_ps(v[0], v[1]), b = _mm256_unpackhi_ps(v[0], v[1]);
  __m256 c = _mm256_unpacklo_ps(v[2], v[3]), d = _mm256_unpackhi_ps(v[2], v[3]);
  v[0] = _mm256_shuffle_ps(a, c, 0x44);
  v[1] = _mm256_shuffle_ps(a, c, 0xee);
  v[2] = _mm256_shuffle_ps(b, d, 0x44);
  v[3] = _mm256_shuffle_ps(b, d, 0xee);
}
[[gnu::always_inline]] inline void turn_vectors(__m256d (&v)[4]) {
  __m256d a = _mm256_unpacklo_pd(v[0], v[1]), b = _mm256_unpackhi_pd(v[0], v[1]);
  __m256d c = _mm256_unpacklo_pd(v[2], v[3]), d = _mm256_unpackhi_pd(v[2], v[3]);
  v[0] = _mm256_permute2f128_pd(a, c, 0x20);
  v[1] = _mm256_permute2f128_pd(b, d, 0x20);
  v[2] = _mm256_permute2f128_pd(a, c, 0x31);
  v[3] = _mm256_permute2f128_pd(b, d, 0x31);
}
[[gnu::always_inline]] inline __m256 load(const float* from) { return _mm256_loadu_ps(from); }
[[gnu::always_inline]] inline __m256d load(const double* from) { return _mm256_loadu_pd(from); }
[[gnu::always_inline]] inline void store(float* to, __m256 v) { _mm256_storeu_ps(to, v); }
[[gnu::always_inline]] inline void store(double* to, __m256d v) { _mm256_storeu_pd(to, v); }
// The first N elements, and zeros.
template <int N>
[[gnu::always_inline]] inline __m256 load_first(const float* from) {
  return _mm256_maskload_ps(from, _mm256_setr_epi32(-1, N > 1 ? -1 : 0, N > 2 ? -1 : 0, N > 3 ? -1 : 0, N > 4 ? -1 : 0,
                                                    N > 5 ? -1 : 0, N > 6 ? -1 : 0, 0));
}
template <int N>
[[gnu::always_inline]] inline __m256d load_first(const double* from) {
  return _mm256_maskload_pd(from, _mm256_setr_epi64x(-1, N > 1 ? -1 : 0, N > 2 ? -1 : 0, 0));
}
template <int N>
[[gnu::always_inline]] inline __m128 load_first_half(const float* from) {
  return _mm_maskload_ps(from, _mm_setr_epi32(-1, N > 1 ? -1 : 0, N > 2 ? -1 : 0, N > 3 ? -1 : 0));
}

// A square of what a vector holds.
template <class T>
[[gnu::always_inline]] inline void turn_square(const T* from, int64_t from_step, T* to, int64_t to_step) {
  decltype(load(from)) v[kSquare<T>];
#pragma GCC unroll 8
  for (int i = 0; i < kSquare<T>; i++) v[i] = load(from + i * from_step);
  turn_vectors(v);
#pragma GCC unroll 8
  for (int i = 0; i < kSquare<T>; i++) store(to + i * to_step, v[i]);
}

// Lines of N elements, fewer than a square has, kSquare of them.
template <int N, class T>
[[gnu::always_inline]] inline void turn_few_in(const T* lines, T* tile) {
  if constexpr (sizeof(T) == 4 && N <= 4) {
    __m256 v[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
      v[i] = _mm256_set_m128(load_first_half<N>(lines + (i + 4) * N), load_first_half<N>(lines + i * N));
    turn_halves(v);
#pragma GCC unroll 4
    for (int i = 0; i < N; i++) store(tile + i * kLines<T>, v[i]);
  } else {
    decltype(load(lines)) v[kSquare<T>];
#pragma GCC unroll 8
    for (int i = 0; i < kSquare<T>; i++) v[i] = load_first<N>(lines + i * N);
    turn_vectors(v);
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) store(tile + i * kLines<T>, v[i]);
  }
}
// Writes up to a vector's length behind the last line's end.
template <int N, class T>
[[gnu::always_inline]] inline void turn_few_out(const T* tile, T* lines) {
  if constexpr (sizeof(T) == 4 && N <= 4) {
    __m256 v[4] = {};
#pragma GCC unroll 4
    for (int i = 0; i < N; i++) v[i] = load(tile + i * kLines<T>);
    turn_halves(v);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) _mm_storeu_ps(lines + i * N, _mm256_castps256_ps128(v[i]));
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) _mm_storeu_ps(lines + (i + 4) * N, _mm256_extractf128_ps(v[i], 1));
  } else {
    decltype(load(tile)) v[kSquare<T>] = {};
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) v[i] = load(tile + i * kLines<T>);
    turn_vectors(v);
#pragma GCC unroll 8
    for (int i = 0; i < kSquare<T>; i++) store(lines + i * N, v[i]);
  }
}
#else
template <class T>
[[gnu::always_inline]] inline void turn_square(const T* from, int64_t from_step, T* to, int64_t to_step) {
  for (int i = 0; i < kSquare<T>; i++) {
    for (int j = 0; j < kSquare<T>; j++) to[j * to_step + i] = from[i * from_step + j];
  }
}
template <int N, class T>
[[gnu::always_inline]] inline void turn_few_in(const T* lines, T* tile) {
  for (int i = 0; i < kSquare<T>; i++) {
    for (int c = 0; c < N; c++) tile[c * kLines<T> + i] = lines[i * N + c];
  }
}
template <int N, class T>
[[gnu::always_inline]] inline void turn_few_out(const T* tile, T* lines) {
  for (int i = 0; i < kSquare<T>; i++) {
    for (int c = 0; c < N; c++) lines[i * N + c] = tile[c * kLines<T> + i];
  }
}
#endif

template <int N, class T>
void turn_short_in(const T* lines, T* tile) {
  for (int64_t r = 0; r < kLines<T>; r += kSquare<T>) turn_few_in<N>(lines + r * N, tile + r);
}
template <int N, class T>
void turn_short_out(const T* tile, T* lines) {
  constexpr int64_t last = kLines<T> - kSquare<T>;
  for (int64_t r = 0; r < last; r += kSquare<T>) turn_few_out<N>(tile + r, lines + r * N);
  T room[kSquare<T> * (N + 1)];
  turn_few_out<N>(tile + last, room);
  __builtin_memcpy(lines + last * N, room, sizeof(T) * kSquare<T> * N);
}

// What is left of a line behind its whole squares: a square that begins earlier, or single columns where they are few.
template <class T>
constexpr int kFewColumns = kSquare<T> / 4;

template <class T>
[[gnu::always_inline]] inline void turn_whole_in(const T* lines, int64_t n, T* tile) {
  constexpr int64_t step = kLines<T>;
  const int64_t rest = n % kSquare<T>;
  for (int64_t r = 0; r < step; r += kSquare<T>) {
    const T* from = lines + r * n;
    for (int64_t c = 0; c + kSquare<T> <= n; c += kSquare<T>) turn_square(from + c, n, tile + c * step + r, step);
    if (rest > kFewColumns<T>) {
      turn_square(from + n - kSquare<T>, n, tile + (n - kSquare<T>)*step + r, step);
    } else {
      for (int64_t c = n - rest; c < n; c++) {
#pragma GCC unroll 8
        for (int i = 0; i < kSquare<T>; i++) tile[c * step + r + i] = from[i * n + c];
      }
    }
  }
}
template <class T>
[[gnu::always_inline]] inline void turn_whole_out(const T* tile, int64_t n, T* lines) {
  constexpr int64_t step = kLines<T>;
  const int64_t rest = n % kSquare<T>;
  for (int64_t r = 0; r < step; r += kSquare<T>) {
    T* to = lines + r * n;
    for (int64_t c = 0; c + kSquare<T> <= n; c += kSquare<T>) turn_square(tile + c * step + r, step, to + c, n);
    if (rest > kFewColumns<T>) {
      turn_square(tile + (n - kSquare<T>)*step + r, step, to + n - kSquare<T>, n);
    } else {
      for (int64_t c = n - rest; c < n; c++) {
#pragma GCC unroll 8
        for (int i = 0; i < kSquare<T>; i++) to[i * n + c] = tile[c * step + r + i];
      }
    }
  }
}

template <class T>
void turn_all_in(const T* lines, int64_t n, T* tile) {
  constexpr bool kNarrow = sizeof(T) == 4;
  switch (n) {
    case 1: return turn_short_in<1>(lines, tile);
    case 2: return turn_short_in<2>(lines, tile);
    case 3: return turn_short_in<3>(lines, tile);
    case 4:
      if constexpr (kNarrow) return turn_short_in<4>(lines, tile);
      break;
    case 5:
      if constexpr (kNarrow) return turn_short_in<5>(lines, tile);
      break;
    case 6:
      if constexpr (kNarrow) return turn_short_in<6>(lines, tile);
      break;
    case 7:
      if constexpr (kNarrow) return turn_short_in<7>(lines, tile);
      break;
    default: break;
  }
  turn_whole_in(lines, n, tile);
}
template <class T>
void turn_all_out(const T* tile, int64_t n, T* lines) {
  constexpr bool kNarrow = sizeof(T) == 4;
  switch (n) {
    case 1: return turn_short_out<1>(tile, lines);
    case 2: return turn_short_out<2>(tile, lines);
    case 3: return turn_short_out<3>(tile, lines);
    case 4:
      if constexpr (kNarrow) return turn_short_out<4>(tile, lines);
      break;
    case 5:
      if constexpr (kNarrow) return turn_short_out<5>(tile, lines);
      break;
    case 6:
      if constexpr (kNarrow) return turn_short_out<6>(tile, lines);
      break;
    case 7:
      if constexpr (kNarrow) return turn_short_out<7>(tile, lines);
      break;
    default: break;
  }
  turn_whole_out(tile, n, lines);
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
