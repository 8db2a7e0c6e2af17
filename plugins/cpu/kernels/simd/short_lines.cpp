// SPDX-License-Identifier: Apache-2.0
// Many short lines at once. A tile holds kLines<T> dense lines turned, side by side: element c of line r lies at
// tile[c * kLines<T> + r], so that vectors run across the lines, whatever their length.
#include "perigee/kernels/fast_double.hpp"
#include "vector.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

// ---- turning ----

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

// A square of what a vector holds.
template <class T>
[[gnu::always_inline]] inline void turn_square(const T* from, int64_t from_step, T* to, int64_t to_step) {
  constexpr int kSide = 32 / sizeof(T);
  decltype(load(from)) v[kSide];
#pragma GCC unroll 8
  for (int i = 0; i < kSide; i++) v[i] = load(from + i * from_step);
  turn_vectors(v);
#pragma GCC unroll 8
  for (int i = 0; i < kSide; i++) store(to + i * to_step, v[i]);
}
#else
template <class T>
[[gnu::always_inline]] inline void turn_square(const T* from, int64_t from_step, T* to, int64_t to_step) {
  constexpr int kSide = 32 / sizeof(T);
  for (int i = 0; i < kSide; i++) {
    for (int j = 0; j < kSide; j++) to[j * to_step + i] = from[i * from_step + j];
  }
}
#endif

// to[j][i] = from[i][j] for `rows` rows of `columns`.
template <class T>
[[gnu::always_inline]] inline void turn(const T* from, int64_t from_step, int64_t rows, int64_t columns, T* to,
                                        int64_t to_step) {
  constexpr int64_t kSide = 32 / sizeof(T);
  int64_t whole_rows = rows - rows % kSide, whole_columns = columns - columns % kSide;
  for (int64_t i = 0; i < whole_rows; i += kSide) {
    for (int64_t j = 0; j < whole_columns; j += kSide)
      turn_square(from + i * from_step + j, from_step, to + j * to_step + i, to_step);
  }
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; j++)
      to[j * to_step + i] = from[i * from_step + j];
  }
}

template <class T>
void turn_in(const void* lines, int64_t count, int64_t n, void* tile) {
  T* to = static_cast<T*>(tile);
  turn(static_cast<const T*>(lines), n, count, n, to, kLines<T>);
  for (int64_t c = 0; c < n && count < kLines<T>; c++) {
    for (int64_t r = count; r < kLines<T>; r++) to[c * kLines<T> + r] = 0;
  }
}
template <class T>
void turn_out(const void* tile, int64_t count, int64_t n, void* lines) {
  turn(static_cast<const T*>(tile), kLines<T>, n, count, static_cast<T*>(lines), n);
}

// ---- reductions of a tile's lines ----

template <class T>
constexpr int kVectors = static_cast<int>(kLines<T> / kVectorLanes<T>);

struct AddVectors {
  template <class V>
  [[gnu::always_inline]] V operator()(V a, V b) const {
    return a + b;
  }
};
// NaN stays, as in math.hpp.
struct LargerVectors {
  template <class V>
  [[gnu::always_inline]] V operator()(V a, V b) const {
    V larger = a > b ? a : b;
    return a == a ? larger : a;
  }
};
struct SmallerVectors {
  template <class V>
  [[gnu::always_inline]] V operator()(V a, V b) const {
    V smaller = a < b ? a : b;
    return a == a ? smaller : a;
  }
};
struct Itself {
  template <class V>
  [[gnu::always_inline]] V operator()(V x) const {
    return x;
  }
};
struct Number {
  template <class V>
  [[gnu::always_inline]] V operator()(V x) const {
    return x == x ? x : V{};
  }
};
struct Nonzero {
  template <class V>
  [[gnu::always_inline]] V operator()(V x) const {
    return x != V{} ? V{} + 1 : V{};
  }
};
struct Magnitude {
  template <class V>
  [[gnu::always_inline]] V operator()(V x) const {
    return x < V{} ? -x : x;
  }
};
struct Squared {
  template <class V>
  [[gnu::always_inline]] V operator()(V x) const {
    return x * x;
  }
};

// One after the other, as reduce.cpp adds up fewer than its 64 lanes: kFromZero starts from 0, which turns -0 into 0.
template <class T, class Op, class Map, bool kFromZero>
[[gnu::always_inline]] inline void fold_tile(const T* x, int64_t n, T* out) {
  Vector<T> acc[kVectors<T>];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors<T>; v++) {
    Vector<T> first = Map()(load_vector(x + v * kVectorLanes<T>));
    acc[v] = kFromZero ? Op()(Vector<T>{}, first) : first;
  }
  for (int64_t c = 1; c < n; c++) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors<T>; v++)
      acc[v] = Op()(acc[v], Map()(load_vector(x + c * kLines<T> + v * kVectorLanes<T>)));
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors<T>; v++) store_vector(out + v * kVectorLanes<T>, acc[v]);
}

template <class T, class Op, class Map = Itself, bool kFromZero = false>
void fold_lines(const void* tile, int64_t n, void* results) {
  alignas(64) T folded[kLines<T>];
  fold_tile<T, Op, Map, kFromZero>(static_cast<const T*>(tile), n, folded);
  double* out = static_cast<double*>(results);
  for (int64_t r = 0; r < kLines<T>; r++) out[r] = static_cast<double>(folded[r]);
}

template <class T>
void prod_lines(const void* tile, int64_t n, void* results) {
  const T* x = static_cast<const T*>(tile);
  double total[kLines<T>];
  for (double& t : total) t = 1;
  for (int64_t c = 0; c < n; c++) {
    for (int64_t r = 0; r < kLines<T>; r++) total[r] *= static_cast<double>(x[c * kLines<T> + r]);
  }
  __builtin_memcpy(results, total, sizeof total);
}

// Integers of T's width count places.
template <class T, bool kMax>
void position_lines(const void* tile, int64_t n, void* results) {
  using Place = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  const T* x = static_cast<const T*>(tile);
  Vector<T> best[kVectors<T>];
  Vector<Place> at[kVectors<T>] = {};
#pragma GCC unroll 8
  for (int v = 0; v < kVectors<T>; v++) best[v] = load_vector(x + v * kVectorLanes<T>);
  for (int64_t c = 1; c < n; c++) {
    Vector<Place> here = Vector<Place>{} + static_cast<Place>(c);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors<T>; v++) {
      Vector<T> y = load_vector(x + c * kLines<T> + v * kVectorLanes<T>), old = best[v];
      auto better = ((kMax ? y > old : y < old) | (y != y)) & (old == old);
      best[v] = better ? y : old;
      at[v] = better ? here : at[v];
    }
  }
  auto* out = static_cast<int64_t*>(results);
  for (int64_t r = 0; r < kLines<T>; r++) out[r] = at[r / kVectorLanes<T>][r % kVectorLanes<T>];
}

template <class T>
void logsumexp_lines(const void* tile, int64_t n, void* results) {
  const T* x = static_cast<const T*>(tile);
  alignas(64) T top[kLines<T>];
  fold_tile<T, LargerVectors, Itself, false>(x, n, top);
  T shift[kLines<T>];
  double total[kLines<T>] = {};
  for (int64_t r = 0; r < kLines<T>; r++) shift[r] = top[r] - top[r] == T(0) ? top[r] : T(0);  // infinite: none
  constexpr int64_t kSome = 8;  // of T, before they go into double
  for (int64_t c = 0; c < n; c += kSome) {
    T lane[kLines<T>] = {};
    int64_t end = c + kSome < n ? c + kSome : n;
    for (int64_t k = c; k < end; k++) {
      PG_LOOP
      for (int64_t r = 0; r < kLines<T>; r++) lane[r] += pg::math::fast_exp(x[k * kLines<T> + r] - shift[r]);
    }
    for (int64_t r = 0; r < kLines<T>; r++) total[r] += static_cast<double>(lane[r]);
  }
  double* out = static_cast<double*>(results);
  PG_LOOP
  for (int64_t r = 0; r < kLines<T>; r++) {
    out[r] = static_cast<double>(shift[r]) + pg::math::positive_log(total[r]);
  }
}

// ---- and the ways back ----

// dy, shared by the elements that are y.
template <class T>
void extreme_grad(const void* tile, const void* found, const void* above, void* below, int64_t n) {
  const T *x = static_cast<const T*>(tile), *y = static_cast<const T*>(found), *dy = static_cast<const T*>(above);
  T *dx = static_cast<T*>(below), share[kLines<T>] = {};
  for (int64_t c = 0; c < n; c++) {
    for (int64_t r = 0; r < kLines<T>; r++) share[r] += x[c * kLines<T> + r] == y[r] ? T(1) : T(0);
  }
  for (int64_t r = 0; r < kLines<T>; r++) share[r] = dy[r] / share[r];
  for (int64_t c = 0; c < n; c++) {
    for (int64_t r = 0; r < kLines<T>; r++) dx[c * kLines<T> + r] = x[c * kLines<T> + r] == y[r] ? share[r] : T(0);
  }
}

// dy times the product of the other elements: with one zero only that has any, with two none.
template <class T>
void prod_grad(const void* tile, const void*, const void* above, void* below, int64_t n) {
  const T *x = static_cast<const T*>(tile), *dy = static_cast<const T*>(above);
  T* dx = static_cast<T*>(below);
  double others[kLines<T>], zeros[kLines<T>] = {};
  for (double& t : others) t = 1;
  for (int64_t c = 0; c < n; c++) {
    PG_LOOP
    for (int64_t r = 0; r < kLines<T>; r++) {
      double v = static_cast<double>(x[c * kLines<T> + r]);
      others[r] *= v == 0 ? 1.0 : v;
      zeros[r] += v == 0 ? 1.0 : 0.0;
    }
  }
  T whole[kLines<T>], single[kLines<T>];
  for (int64_t r = 0; r < kLines<T>; r++) {
    whole[r] = zeros[r] == 0 ? static_cast<T>(others[r]) : T(0);
    single[r] = zeros[r] == 1 ? static_cast<T>(others[r]) : T(0);
  }
  for (int64_t c = 0; c < n; c++) {
    PG_LOOP
    for (int64_t r = 0; r < kLines<T>; r++) {
      T v = x[c * kLines<T> + r];
      dx[c * kLines<T> + r] = dy[r] * (v == T(0) ? single[r] : whole[r] / (v == T(0) ? T(1) : v));
    }
  }
}

template <class T>
void fill(Simd& table, bool wide) {
  table.turn_in[wide] = turn_in<T>;
  table.turn_out[wide] = turn_out<T>;
  table.extreme_grad[wide] = extreme_grad<T>;
  table.prod_grad[wide] = prod_grad<T>;
  auto& lines = table.short_lines;
  lines[rSum][wide] = fold_lines<T, AddVectors, Itself, true>;
  lines[rProd][wide] = prod_lines<T>;
  lines[rAmax][wide] = fold_lines<T, LargerVectors>;
  lines[rAmin][wide] = fold_lines<T, SmallerVectors>;
  lines[rArgmax][wide] = position_lines<T, true>;
  lines[rArgmin][wide] = position_lines<T, false>;
  lines[rLogsumexp][wide] = logsumexp_lines<T>;
  lines[rNumbers][wide] = fold_lines<T, AddVectors, Number, true>;
  lines[rNonzeros][wide] = fold_lines<T, AddVectors, Nonzero, true>;
  lines[rMagnitudes][wide] = fold_lines<T, AddVectors, Magnitude, true>;
  lines[rSquares][wide] = fold_lines<T, AddVectors, Squared, true>;
  lines[rAbsMax][wide] = fold_lines<T, LargerVectors, Magnitude>;
  lines[rAbsMin][wide] = fold_lines<T, SmallerVectors, Magnitude>;
}

}  // namespace

void fill_short_lines(Simd& table) {
  fill<float>(table, false);
  fill<double>(table, true);
}

}  // namespace cpu::PG_CPU_ISA
