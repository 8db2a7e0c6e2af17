// SPDX-License-Identifier: Apache-2.0
// Many short lines at once, as tiles of them lie turned (turn.hpp).
#include "exp_below.hpp"
#include "perigee/kernels/math.hpp"
#include "turn.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

// ---- reductions of a tile's lines that are no folds (short_folds.cpp) ----

template <class T>
constexpr int kVectors = static_cast<int>(kLines<T> / kVectorLanes<T>);

// Integers of T's width count places.
template <class T, bool kMax>
[[gnu::always_inline]] inline void tile_positions(const T* x, int64_t n, int64_t* out) {
  using Place = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
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
  for (int64_t r = 0; r < kLines<T>; r++) out[r] = at[r / kVectorLanes<T>][r % kVectorLanes<T>];
}

template <class T>
[[gnu::always_inline]] inline void tile_logsumexp(const T* x, int64_t n, T* out) {
  T top[kLines<T>], shift[kLines<T>];
  double total[kLines<T>] = {};
  for (int64_t r = 0; r < kLines<T>; r++) top[r] = x[r];
  for (int64_t c = 1; c < n; c++) {
    for (int64_t r = 0; r < kLines<T>; r++) top[r] = pg::math::Maximum()(top[r], x[c * kLines<T> + r]);
  }
  for (int64_t r = 0; r < kLines<T>; r++) shift[r] = top[r] - top[r] == T(0) ? top[r] : T(0);  // infinite: none
  constexpr int64_t kSome = 8;  // of T, before they go into double
  for (int64_t c = 0; c < n; c += kSome) {
    T lane[kLines<T>] = {};
    int64_t end = c + kSome < n ? c + kSome : n;
    for (int64_t k = c; k < end; k++) {
      PG_LOOP
      for (int64_t r = 0; r < kLines<T>; r++) lane[r] += exp_below(x[k * kLines<T> + r] - shift[r]);
    }
    for (int64_t r = 0; r < kLines<T>; r++) total[r] += static_cast<double>(lane[r]);
  }
  PG_LOOP
  for (int64_t r = 0; r < kLines<T>; r++) {
    T sum = static_cast<T>(static_cast<double>(shift[r]) + pg::math::positive_log(total[r]));
    out[r] = pg::math::pick(top[r] == static_cast<T>(HUGE_VAL), top[r], sum);
  }
}

// reduce(tile, results) for each tile of the lines.
template <class T, class Result, class Reduce>
[[gnu::always_inline]] inline void each_tile(const void* lines, int64_t count, int64_t n, void* results,
                                             const Reduce& reduce) {
  alignas(64) T tile[kShortLine * kLines<T>];
  alignas(64) Result found[kLines<T>];
  for (int64_t i = 0; i < count; i += kLines<T>) {
    int64_t some = count - i < kLines<T> ? count - i : kLines<T>;
    turn_in<T>(static_cast<const T*>(lines) + i * n, some, n, tile);
    reduce(tile, found);
    __builtin_memcpy(static_cast<Result*>(results) + i, found, static_cast<size_t>(some) * sizeof(Result));
  }
}
template <class T, bool kMax>
void position_lines(const void* lines, int64_t count, int64_t n, void* results) {
  each_tile<T, int64_t>(
      lines, count, n, results, [=](const T* tile, int64_t* found) __attribute__((always_inline)) {
        tile_positions<T, kMax>(tile, n, found);
      });
}
template <class T>
void logsumexp_lines(const void* lines, int64_t count, int64_t n, void* results) {
  each_tile<T, T>(
      lines, count, n,
      results, [=](const T* tile, T* found) __attribute__((always_inline)) { tile_logsumexp(tile, n, found); });
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
  table.short_lines[rArgmax][wide] = position_lines<T, true>;
  table.short_lines[rArgmin][wide] = position_lines<T, false>;
  table.short_lines[rLogsumexp][wide] = logsumexp_lines<T>;
}

}  // namespace

void fill_short_lines(Simd& table) {
  fill<float>(table, false);
  fill<double>(table, true);
}

}  // namespace cpu::PG_CPU_ISA
