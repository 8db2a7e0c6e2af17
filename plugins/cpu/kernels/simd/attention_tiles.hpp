// SPDX-License-Identifier: Apache-2.0
// Attention over blocks of keys with a running maximum and sum (Milakov and Gimelshein 2018; Dao et al. 2022): nothing
// of the size queries x keys is ever kept. Backward computes the weights again from the logarithms of the sums.
#pragma once

#include "../../attention_pass.hpp"

#include "perigee/kernels/math.hpp"
#include "perigee/kernels/philox.hpp"
#include "vector.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

constexpr int64_t kKeys = kAttentionKeys, kRows = kAttentionRows, kLanes = 16;

[[gnu::always_inline]] inline float power(float x) { return pg::math::fast_exp(x); }
[[gnu::always_inline]] inline double power(double x) { return __builtin_exp(x); }
[[gnu::always_inline]] inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
[[gnu::always_inline]] inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// All lanes joined, in an order that takes few steps.
template <int64_t lanes, class T, class Join>
[[gnu::always_inline]] inline T fold(T* lane, const Join& join) {
  if constexpr (lanes > 1) {
    for (int64_t j = 0; j < lanes / 2; j++) lane[j] = join(lane[j], lane[j + lanes / 2]);
    return fold<lanes / 2>(lane, join);
  }
  return lane[0];
}

// NaN is passed over: the exponentials bring it back.
template <class T>
[[gnu::always_inline]] inline T largest(const T* x, int64_t n) {
  constexpr int64_t lanes = kVectorLanes<T>;
  T top = -INFINITY;
  int64_t i = 0;
  if (n >= lanes) {
    Vector<T> best = load_vector(x);
    for (i = lanes; i + lanes <= n; i += lanes) {
      Vector<T> v = load_vector(x + i);
      best = v > best ? v : best;
    }
    T lane[lanes];
    store_vector(lane, best);
    top = fold<lanes>(
        lane, [](T a, T b) __attribute__((always_inline)) { return b > a ? b : a; });
    top = top != top ? -INFINITY : top;
  }
  for (; i < n; i++) top = x[i] > top ? x[i] : top;
  return top;
}

// x = e^(x - shift) over whole lanes (the room behind n is there); the sum of the first n, the rest becomes 0.
template <class T>
[[gnu::always_inline]] inline T exponentials(T* x, int64_t n, T shift) {
  T lane[kLanes] = {};
  for (int64_t i = n; i < (n + kLanes - 1) / kLanes * kLanes; i++) x[i] = -INFINITY;
  for (int64_t i = 0; i < n; i += kLanes) {
    PG_LOOP
    for (int64_t j = 0; j < kLanes; j++) {
      x[i + j] = power(x[i + j] - shift);
      lane[j] += x[i + j];
    }
  }
  return fold<kLanes>(
      lane, [](T a, T b) __attribute__((always_inline)) { return a + b; });
}

// A tile of scores: queries [row, row + rows), keys [key, key + keys) of a block.
struct Tile {
  int64_t row, rows, key, keys;
};

// How many keys of the tile query `row + i` sees.
[[gnu::always_inline]] inline int64_t seen(const AttentionPass& p, const Tile& t, int64_t i) {
  if (p.causal == 0) return t.keys;
  return most(0, least(t.keys, t.row + i + 1 - t.key));
}

template <class T>
void apply_mask(const AttentionPass& p, const Tile& t, T* scores) {
  for (int64_t i = 0; i < t.rows; i++) {
    int64_t at = (t.row + i) * p.mask_row + t.key * p.mask_column, n = seen(p, t, i);
    T* s = scores + i * kKeys;
    if (p.mask_kind == 1) {
      auto* mask = static_cast<const uint8_t*>(p.mask) + at;
      for (int64_t j = 0; j < n; j++) s[j] = mask[j * p.mask_column] != 0 ? s[j] : -INFINITY;
    } else {
      auto* mask = static_cast<const T*>(p.mask) + at;
      for (int64_t j = 0; j < n; j++) s[j] += mask[j * p.mask_column];
    }
  }
}

// The factors, 0 or 1 / (1 - drop), of query i's weights.
template <class T>
[[gnu::always_inline]] inline void dropout_factors(const AttentionPass& p, const Tile& t, int64_t i, int64_t n, T* f) {
  uint8_t keep[kKeys];
  uint64_t begin = p.first + static_cast<uint64_t>((t.row + i) * p.keys + t.key);
  pg::philox::fill_keep(keep, begin, begin + static_cast<uint64_t>(n), p.seed, p.offset, p.drop);
  T factor = p.drop < 1 ? static_cast<T>(1 / (1 - p.drop)) : T(0);
  for (int64_t j = 0; j < n; j++) f[j] = keep[j] != 0 ? factor : T(0);
}

// Products: what multiplies, and in which form its factors lie.
template <class Products>
void forward_tile(const AttentionPass& p, int64_t row, int64_t rows) {
  using T = typename Products::Number;
  const int64_t v_row = attention_pad(p.value_width);
  T* scores = static_cast<T*>(p.scratch);
  T* sums = scores + 2 * kRows * kKeys;  // [rows][v_row]
  T *top = sums + kRows * v_row, *total = top + kRows;
  for (int64_t i = 0; i < rows; i++) top[i] = -INFINITY, total[i] = 0;
  for (int64_t i = 0; i < rows * v_row; i++) sums[i] = 0;
  int64_t last = p.causal != 0 ? least(p.keys, row + rows) : p.keys;
  for (int64_t key = 0; key < last; key += kKeys) {
    Tile t{row, rows, key, least(kKeys, p.keys - key)};
    Products::score(p, t, scores);
    if (p.mask_kind != 0) apply_mask(p, t, scores);
    T shift[kRows], fade[kRows];
    for (int64_t i = 0; i < rows; i++) {
      const T high = largest(scores + i * kKeys, seen(p, t, i)), before = top[i];
      if (high > before) top[i] = high;
      shift[i] = top[i] == T(-INFINITY) ? T(0) : top[i];
      fade[i] = before - shift[i];  // of what has been summed: e to this, 0 where that is nothing
    }
    PG_LOOP
    for (int64_t i = 0; i < rows; i++) fade[i] = power(fade[i]);
    for (int64_t i = 0; i < rows; i++) {
      T* s = scores + i * kKeys;
      int64_t n = seen(p, t, i);
      T sum = exponentials(s, n, shift[i]);
      for (int64_t j = (n + kLanes - 1) / kLanes * kLanes; j < kKeys; j++) s[j] = 0;
      total[i] = total[i] * fade[i] + sum;
      if (fade[i] != 1) {
        PG_LOOP
        for (int64_t j = 0; j < v_row; j++) sums[i * v_row + j] *= fade[i];
      }
      if (p.drop > 0 && n > 0) {
        T factor[kKeys];
        dropout_factors(p, t, i, n, factor);
        for (int64_t j = 0; j < n; j++) s[j] *= factor[j];
      }
    }
    Products::sum_values(p, t, scores, sums);
  }
  for (int64_t i = 0; i < rows; i++) {
    T scale = total[i] == 0 ? T(0) : 1 / total[i], *out = static_cast<T*>(p.out) + (row + i) * v_row;
    PG_LOOP
    for (int64_t j = 0; j < v_row; j++) out[j] = sums[i * v_row + j] * scale;
    static_cast<T*>(p.lse)[row + i] = total[i] == 0 ? T(INFINITY) : top[i] + static_cast<T>(__builtin_log(total[i]));
  }
}

template <class Products>
void forward(const AttentionPass& p) {
  for (int64_t row = p.query_begin; row < p.query_end; row += kRows)
    forward_tile<Products>(p, row, least(kRows, p.query_end - row));
}

// With P the weights and M their dropout factors: dv += (P M)' dout, dS = P (M (dout v') - delta), dq += dS k,
// dk += dS' q.
template <class Products>
void backward_tile(const AttentionPass& p, const Tile& t) {
  using T = typename Products::Number;
  T *weights = static_cast<T*>(p.scratch), *slopes = weights + kRows * kKeys;
  auto *lse = static_cast<const T*>(p.lse) + t.row, *delta = static_cast<const T*>(p.delta) + t.row;
  Products::score(p, t, weights);
  if (p.mask_kind != 0) apply_mask(p, t, weights);
  Products::score_slopes(p, t, slopes);
  for (int64_t i = 0; i < t.rows; i++) {
    T *w = weights + i * kKeys, *s = slopes + i * kKeys, d = delta[i];
    int64_t n = seen(p, t, i);
    exponentials(w, n, lse[i]);
    if (p.drop > 0 && n > 0) {
      T factor[kKeys];
      dropout_factors(p, t, i, n, factor);
      for (int64_t j = 0; j < n; j++) {
        s[j] = w[j] * (s[j] * factor[j] - d);
        w[j] *= factor[j];
      }
    } else {
      PG_LOOP
      for (int64_t j = 0; j < n; j++) s[j] = w[j] * (s[j] - d);
    }
    for (int64_t j = n; j < kKeys; j++) w[j] = s[j] = 0;
  }
  Products::sum_gradients(p, t, weights, slopes);
}

// Whatever of the keys and queries is asked for, each sum has the same order.
template <class Products>
void backward(const AttentionPass& p) {
  for (int64_t key = p.key_begin; key < p.key_end; key += kKeys) {
    int64_t begin = p.query_begin;
    if (p.causal != 0 && key > begin) begin += (key - begin) / kRows * kRows;
    for (int64_t row = begin; row < p.query_end; row += kRows)
      backward_tile<Products>(p, {row, least(kRows, p.query_end - row), key, least(kKeys, p.keys - key)});
  }
}

}  // namespace
}  // namespace cpu::PG_CPU_ISA
