// SPDX-License-Identifier: Apache-2.0
// This instruction set's widest vectors, arithmetic of them, and the small matrix product that is made of them.
#pragma once

#include "loop.hpp"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace cpu::PG_CPU_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
constexpr int64_t kVectorLanes = kVectorBytes / static_cast<int64_t>(sizeof(T));

template <class T>
[[gnu::always_inline]] inline Vector<T> load_vector(const T* at) {
  return *reinterpret_cast<const Vector<T>*>(at);
}
template <class T>
[[gnu::always_inline]] inline void store_vector(T* at, Vector<T> v) {
  *reinterpret_cast<Vector<T>*>(at) = v;
}

// Arithmetic that takes vectors of a compiler's own: theirs of integers wrap around when they are unsigned.
struct AddLanes {
  template <class V>
  [[gnu::always_inline]] V operator()(V a, V b) const {
    return a + b;
  }
};
struct SubLanes {
  template <class V>
  [[gnu::always_inline]] V operator()(V a, V b) const {
    return a - b;
  }
};
struct MulLanes {
  template <class V>
  [[gnu::always_inline]] V operator()(V a, V b) const {
    return a * b;
  }
};
struct DivLanes {
  template <class V>
  [[gnu::always_inline]] V operator()(V a, V b) const {
    return a / b;
  }
};

// c + a b with one rounding, where the processor has it.
[[gnu::always_inline]] inline Vector<float> multiply_add(float a, Vector<float> b, Vector<float> c) {
#if defined(__AVX512F__)
  return (Vector<float>)_mm512_fmadd_ps(_mm512_set1_ps(a), (__m512)b, (__m512)c);
#elif defined(__AVX2__)
  return (Vector<float>)_mm256_fmadd_ps(_mm256_set1_ps(a), (__m256)b, (__m256)c);
#else
  return c + a * b;
#endif
}
[[gnu::always_inline]] inline Vector<double> multiply_add(double a, Vector<double> b, Vector<double> c) {
#if defined(__AVX512F__)
  return (Vector<double>)_mm512_fmadd_pd(_mm512_set1_pd(a), (__m512d)b, (__m512d)c);
#elif defined(__AVX2__)
  return (Vector<double>)_mm256_fmadd_pd(_mm256_set1_pd(a), (__m256d)b, (__m256d)c);
#else
  return c + a * b;
#endif
}

// What products of T are summed in.
template <class T>
struct SumOf {
  using type = T;
};
#if defined(__AVX512BF16__)
// Two numbers of bfloat16, the first in the lower half: c + a[0] b[0] + a[1] b[1].
template <>
struct SumOf<uint32_t> {
  using type = float;
};
[[gnu::always_inline]] inline Vector<float> multiply_add(uint32_t a, Vector<uint32_t> b, Vector<float> c) {
  return (Vector<float>)_mm512_dpbf16_ps((__m512)c, (__m512bh)_mm512_set1_epi32(static_cast<int>(a)), (__m512bh)b);
}
#endif

// A matrix whose element (i, p) lies at data[i * row + p * column].
template <class T>
struct Left {
  const T* data;
  int64_t row, column;
};

// What becomes of c: it is replaced, it is what sums begin with, or they are added to it (which rounds to less where
// many parts are added up).
enum class Onto { kNothing, kSums, kBehind };

// c[Rows][Vectors] (+)= a[Rows][begin .. end) b[begin .. end)[Vectors]
template <class T, int Rows, int Vectors>
[[gnu::always_inline]] inline void small_tile(int64_t begin, int64_t end, Left<T> a, const T* b, int64_t b_row,
                                              typename SumOf<T>::type* c, int64_t c_row, Onto onto) {
  constexpr int64_t lanes = kVectorLanes<T>;
  Vector<typename SumOf<T>::type> sum[Rows][Vectors] = {};
  if (onto == Onto::kSums) {
#pragma GCC unroll 8
    for (int i = 0; i < Rows; i++) {
#pragma GCC unroll 2
      for (int j = 0; j < Vectors; j++) sum[i][j] = load_vector(c + i * c_row + j * lanes);
    }
  }
  const T* left = a.data + begin * a.column;
  for (int64_t p = begin; p < end; p++, left += a.column) {
    const T* right = b + p * b_row;
    Vector<T> b0 = load_vector(right), b1 = Vectors > 1 ? load_vector(right + (Vectors > 1 ? lanes : 0)) : b0;
#pragma GCC unroll 8
    for (int i = 0; i < Rows; i++) {
      T x = left[i * a.row];
      sum[i][0] = multiply_add(x, b0, sum[i][0]);
      if constexpr (Vectors > 1) sum[i][Vectors - 1] = multiply_add(x, b1, sum[i][Vectors - 1]);
    }
  }
  if (onto == Onto::kBehind) {
#pragma GCC unroll 8
    for (int i = 0; i < Rows; i++) {
#pragma GCC unroll 2
      for (int j = 0; j < Vectors; j++) sum[i][j] = load_vector(c + i * c_row + j * lanes) + sum[i][j];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; i++) {
#pragma GCC unroll 2
    for (int j = 0; j < Vectors; j++) store_vector(c + i * c_row + j * lanes, sum[i][j]);
  }
}

// What of a product a stretch of rows needs: columns [0, columns) and the depth [begin, end).
struct Extent {
  int64_t columns, begin, end;
};

template <class T, int Rows>
void small_rows(Extent e, Left<T> a, const T* b, int64_t b_row, typename SumOf<T>::type* c, int64_t c_row, Onto onto) {
  constexpr int64_t lanes = kVectorLanes<T>;
  int64_t j = 0;
  for (; j + lanes < e.columns; j += 2 * lanes)
    small_tile<T, Rows, 2>(e.begin, e.end, a, b + j, b_row, c + j, c_row, onto);
  if (j < e.columns) small_tile<T, Rows, 1>(e.begin, e.end, a, b + j, b_row, c + j, c_row, onto);
}

// c[m][...] (+)= a[m][...] b. extent(i, rows) says what rows i to i + rows need; columns are rounded up to a vector.
template <class T, class ExtentOf>
[[gnu::always_inline]] inline void small_product(int64_t m, Left<T> a, const T* b, int64_t b_row,
                                                 typename SumOf<T>::type* c, int64_t c_row, Onto onto,
                                                 const ExtentOf& extent) {
  constexpr int kRows = 6;
  int64_t i = 0;
  for (; i + kRows <= m; i += kRows) {
    small_rows<T, kRows>(extent(i, kRows), {a.data + i * a.row, a.row, a.column}, b, b_row, c + i * c_row, c_row, onto);
  }
  Left<T> rest{a.data + i * a.row, a.row, a.column};
  auto* target = c + i * c_row;
  switch (m - i) {
    case 5: return small_rows<T, 5>(extent(i, 5), rest, b, b_row, target, c_row, onto);
    case 4: return small_rows<T, 4>(extent(i, 4), rest, b, b_row, target, c_row, onto);
    case 3: return small_rows<T, 3>(extent(i, 3), rest, b, b_row, target, c_row, onto);
    case 2: return small_rows<T, 2>(extent(i, 2), rest, b, b_row, target, c_row, onto);
    case 1: return small_rows<T, 1>(extent(i, 1), rest, b, b_row, target, c_row, onto);
    default: return;
  }
}

}  // namespace
}  // namespace cpu::PG_CPU_ISA
