// SPDX-License-Identifier: Apache-2.0
// Rows made from rows: each element from its neighbours in one row, or from those at its place in several.
#include "../../resample_row.hpp"
#include "vector.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

// ---- along a row ----

#if defined(__AVX2__)
constexpr int64_t kWidth = kVectorLanes<float>;
#if defined(__AVX512F__)
using Places = __m512i;
[[gnu::always_inline]] inline Places load_places(const int32_t* at) { return _mm512_loadu_si512(at); }
[[gnu::always_inline]] inline Vector<float> pick(Vector<float> v, Places at) {
  return (Vector<float>)_mm512_maskz_permutexvar_ps(0xffff, at, (__m512)v);  // without: a warning of GCC 12's header
}
// v, and 0 where the weight is.
[[gnu::always_inline]] inline Vector<float> counted(Vector<float> v, Vector<float> weight) {
  __mmask16 counts = _mm512_cmp_ps_mask((__m512)weight, _mm512_setzero_ps(), _CMP_NEQ_UQ);
  return (Vector<float>)_mm512_maskz_mov_ps(counts, (__m512)v);
}
#else
using Places = __m256i;
[[gnu::always_inline]] inline Places load_places(const int32_t* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
[[gnu::always_inline]] inline Vector<float> pick(Vector<float> v, Places at) {
  return (Vector<float>)_mm256_permutevar8x32_ps((__m256)v, at);
}
[[gnu::always_inline]] inline Vector<float> counted(Vector<float> v, Vector<float> weight) {
  __m256 counts = _mm256_cmp_ps((__m256)weight, _mm256_setzero_ps(), _CMP_NEQ_UQ);
  return (Vector<float>)_mm256_and_ps((__m256)v, counts);
}
#endif
[[gnu::always_inline]] inline Vector<float> multiply_add(Vector<float> a, Vector<float> b, Vector<float> c) {
#if defined(__AVX512F__)
  return (Vector<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
  return (Vector<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#endif
}

// kTaps 0: as many as the table says.
template <int kTaps, bool kGaps>
void row_of_taps(const RowBlocks& t, const float* x, float* y) {
  const int64_t taps = kTaps > 0 ? kTaps : t.taps;
  const float* weights = t.weight;
  for (int64_t o = 0, block = 0; o < t.count; o += t.lanes, block++, weights += taps * kWidth) {
    const float* from = x + t.base[block];
    Places at = load_places(t.place + block * kWidth);
    Vector<float> sum = {};
    for (int64_t k = 0; k < taps; k++) {
      Vector<float> weight = load_vector(weights + k * kWidth), v = pick(load_vector(from + k), at);
      if constexpr (kGaps) v = counted(v, weight);
      sum = k == 0 ? weight * v : multiply_add(weight, v, sum);
    }
    // What is written behind the block's lanes the next one writes again.
    if (o + kWidth <= t.count) {
      store_vector(y + o, sum);
    } else {
      float last[kWidth];
      store_vector(last, sum);
      for (int64_t i = 0; i < t.lanes && o + i < t.count; i++) y[o + i] = last[i];
    }
  }
}
template <bool kGaps>
void row_of(const RowBlocks& t, const float* x, float* y) {
  switch (t.taps) {
    case 1: return row_of_taps<1, kGaps>(t, x, y);
    case 2: return row_of_taps<2, kGaps>(t, x, y);
    case 3: return row_of_taps<3, kGaps>(t, x, y);
    case 4: return row_of_taps<4, kGaps>(t, x, y);
    default: return row_of_taps<0, kGaps>(t, x, y);
  }
}
void resample_row(const RowBlocks& t, const float* x, float* y) {
  t.gaps ? row_of<true>(t, x, y) : row_of<false>(t, x, y);
}
#endif

// ---- across rows ----

[[gnu::always_inline]] inline float multiply_add_one(float a, float b, float c) {
#if defined(__FMA__)
  return __builtin_fmaf(a, b, c);
#else
  return c + a * b;
#endif
}
[[gnu::always_inline]] inline double multiply_add_one(double a, double b, double c) {
#if defined(__FMA__)
  return __builtin_fma(a, b, c);
#else
  return c + a * b;
#endif
}

// kCount 0: as many as `count`.
template <class T, int kCount>
[[gnu::always_inline]] inline void combine(const T* const* rows, const T* weight, int64_t count, T* y, int64_t n) {
  constexpr int64_t lanes = kVectorLanes<T>;
  if (kCount > 0) count = kCount;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    Vector<T> a = weight[0] * load_vector(rows[0] + i), b = weight[0] * load_vector(rows[0] + i + lanes);
    for (int64_t k = 1; k < count; k++) {
      a = multiply_add(weight[k], load_vector(rows[k] + i), a);
      b = multiply_add(weight[k], load_vector(rows[k] + i + lanes), b);
    }
    store_vector(y + i, a);
    store_vector(y + i + lanes, b);
  }
  for (; i < n; i++) {
    T sum = weight[0] * rows[0][i];
    for (int64_t k = 1; k < count; k++) sum = multiply_add_one(weight[k], rows[k][i], sum);
    y[i] = sum;
  }
}
template <class T>
void combine_rows(const void* const* rows, const void* weight, int64_t count, void* y, int64_t n) {
  auto* from = reinterpret_cast<const T* const*>(rows);
  auto* w = static_cast<const T*>(weight);
  T* to = static_cast<T*>(y);
  switch (count) {
    case 1: return combine<T, 1>(from, w, count, to, n);
    case 2: return combine<T, 2>(from, w, count, to, n);
    case 4: return combine<T, 4>(from, w, count, to, n);
    default: return combine<T, 0>(from, w, count, to, n);
  }
}

}  // namespace

void fill_resample(Simd& table) {
#if defined(__AVX2__)
  table.resample_width = static_cast<int32_t>(kWidth);
  table.resample_row = resample_row;
#endif
  table.combine_rows[0] = combine_rows<float>;
  table.combine_rows[1] = combine_rows<double>;
}

}  // namespace cpu::PG_CPU_ISA
