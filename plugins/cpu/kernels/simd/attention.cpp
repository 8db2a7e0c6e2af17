// SPDX-License-Identifier: Apache-2.0
// Attention over blocks of keys with a running maximum and sum (Milakov and Gimelshein 2018; Dao et al. 2022): nothing
// of the size queries x keys is ever kept. Backward computes the weights again from the logarithms of the sums.
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
    for (int64_t j = 0; j < lanes; j++) top = best[j] > top ? best[j] : top;
  }
  for (; i < n; i++) top = x[i] > top ? x[i] : top;
  return top;
}

// x = e^(x - shift) over whole lanes (the room behind n is there); the sum of the first n, the rest becomes 0.
template <class T>
[[gnu::always_inline]] inline T exponentials(T* x, int64_t n, T shift) {
  T lane[kLanes] = {}, total = 0;
  for (int64_t i = n; i < (n + kLanes - 1) / kLanes * kLanes; i++) x[i] = -INFINITY;
  for (int64_t i = 0; i < n; i += kLanes) {
    PG_LOOP
    for (int64_t j = 0; j < kLanes; j++) {
      x[i + j] = power(x[i + j] - shift);
      lane[j] += x[i + j];
    }
  }
  for (T v : lane) total += v;
  return total;
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

// scores = q k' for the tile, what no query of six sees left out.
template <class T>
[[gnu::always_inline]] inline void score(const AttentionPass& p, const Tile& t, const T* q, int64_t q_row,
                                         const void* turned, int64_t width, T* scores) {
  const T* block = static_cast<const T*>(turned) + t.key * width;  // blocks of kKeys rows of k, each [width][kKeys]
  small_product<T>(t.rows, {q + t.row * q_row, q_row, 1}, block, kKeys, scores, kKeys, false,
                   [&](int64_t i, int64_t n) {
                     return Extent{seen(p, t, i + n - 1), 0, width};
                   });
}

template <class T>
void forward_tile(const AttentionPass& p, int64_t row, int64_t rows) {
  int64_t q_row = attention_pad(p.width), v_row = attention_pad(p.value_width);
  T* scores = static_cast<T*>(p.scratch);
  T* sums = scores + 2 * kRows * kKeys;  // [rows][v_row]
  T *top = sums + kRows * v_row, *total = top + kRows;
  for (int64_t i = 0; i < rows; i++) top[i] = -INFINITY, total[i] = 0;
  for (int64_t i = 0; i < rows * v_row; i++) sums[i] = 0;
  int64_t last = p.causal != 0 ? least(p.keys, row + rows) : p.keys;
  for (int64_t key = 0; key < last; key += kKeys) {
    Tile t{row, rows, key, least(kKeys, p.keys - key)};
    score(p, t, static_cast<const T*>(p.q), q_row, p.kt, p.width, scores);
    if (p.mask_kind != 0) apply_mask(p, t, scores);
    for (int64_t i = 0; i < rows; i++) {
      T* s = scores + i * kKeys;
      int64_t n = seen(p, t, i);
      T high = largest(s, n), before = top[i];
      if (high > before) top[i] = high;
      T shift = top[i] == T(-INFINITY) ? T(0) : top[i], fade = before == T(-INFINITY) ? T(0) : power(before - shift);
      T sum = exponentials(s, n, shift);
      for (int64_t j = (n + kLanes - 1) / kLanes * kLanes; j < kKeys; j++) s[j] = 0;
      total[i] = total[i] * fade + sum;
      if (fade != 1) {
        PG_LOOP
        for (int64_t j = 0; j < v_row; j++) sums[i * v_row + j] *= fade;
      }
      if (p.drop > 0 && n > 0) {
        T factor[kKeys];
        dropout_factors(p, t, i, n, factor);
        for (int64_t j = 0; j < n; j++) s[j] *= factor[j];
      }
    }
    small_product<T>(rows, {scores, kKeys, 1}, static_cast<const T*>(p.v) + key * v_row, v_row, sums, v_row, true,
                     [&](int64_t i, int64_t n) {
                       return Extent{v_row, 0, seen(p, t, i + n - 1)};
                     });
  }
  for (int64_t i = 0; i < rows; i++) {
    T scale = total[i] == 0 ? T(0) : 1 / total[i], *out = static_cast<T*>(p.out) + (row + i) * v_row;
    PG_LOOP
    for (int64_t j = 0; j < v_row; j++) out[j] = sums[i * v_row + j] * scale;
    static_cast<T*>(p.lse)[row + i] = total[i] == 0 ? T(INFINITY) : top[i] + static_cast<T>(__builtin_log(total[i]));
  }
}

template <class T>
void forward(const AttentionPass& p) {
  for (int64_t row = p.query_begin; row < p.query_end; row += kRows)
    forward_tile<T>(p, row, least(kRows, p.query_end - row));
}

// With P the weights and M their dropout factors: dv += (P M)' dout, dS = P (M (dout v') - delta), dq += dS k,
// dk += dS' q.
template <class T>
void backward_tile(const AttentionPass& p, const Tile& t) {
  int64_t q_row = attention_pad(p.width), v_row = attention_pad(p.value_width);
  T *weights = static_cast<T*>(p.scratch), *slopes = weights + kRows * kKeys;
  auto *q = static_cast<const T*>(p.q), *dout = static_cast<const T*>(p.dout);
  auto *lse = static_cast<const T*>(p.lse) + t.row, *delta = static_cast<const T*>(p.delta) + t.row;
  score(p, t, q, q_row, p.kt, p.width, weights);
  if (p.mask_kind != 0) apply_mask(p, t, weights);
  score(p, t, dout, v_row, p.vt, p.value_width, slopes);
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
  if (p.dq != nullptr) {
    small_product<T>(t.rows, {slopes, kKeys, 1}, static_cast<const T*>(p.k) + t.key * q_row, q_row,
                     static_cast<T*>(p.dq) + t.row * q_row, q_row, true, [&](int64_t i, int64_t n) {
                       return Extent{q_row, 0, seen(p, t, i + n - 1)};
                     });
  }
  if (p.dk == nullptr) return;
  // Of key j only queries from `first` on know.
  auto first = [&](int64_t j) { return p.causal != 0 ? most(0, least(t.rows, t.key + j - t.row)) : 0; };
  small_product<T>(t.keys, {weights, 1, kKeys}, dout + t.row * v_row, v_row, static_cast<T*>(p.dv) + t.key * v_row,
                   v_row, true, [&](int64_t j, int64_t) {
                     return Extent{v_row, first(j), t.rows};
                   });
  small_product<T>(t.keys, {slopes, 1, kKeys}, q + t.row * q_row, q_row, static_cast<T*>(p.dk) + t.key * q_row, q_row,
                   true, [&](int64_t j, int64_t) {
                     return Extent{q_row, first(j), t.rows};
                   });
}

// Whatever of the keys and queries is asked for, each sum has the same order.
template <class T>
void backward(const AttentionPass& p) {
  for (int64_t key = p.key_begin; key < p.key_end; key += kKeys) {
    int64_t begin = p.query_begin;
    if (p.causal != 0 && key > begin) begin += (key - begin) / kRows * kRows;
    for (int64_t row = begin; row < p.query_end; row += kRows)
      backward_tile<T>(p, {row, least(kRows, p.query_end - row), key, least(kKeys, p.keys - key)});
  }
}

template <class T>
void turn(const void* source, int64_t step, int64_t rows, int64_t columns, void* target) {
  auto* from = static_cast<const T*>(source);
  auto* to = static_cast<T*>(target);
  for (int64_t i = 0; i < kKeys; i += 8) {
    if (i + 8 <= rows) {
      for (int64_t j = 0; j < columns; j++) {
        for (int64_t k = 0; k < 8; k++) to[j * kKeys + i + k] = from[(i + k) * step + j];
      }
      continue;
    }
    for (int64_t j = 0; j < columns; j++) {
      for (int64_t k = i; k < i + 8; k++) to[j * kKeys + k] = k < rows ? from[k * step + j] : T(0);
    }
  }
}

}  // namespace

void fill_attention(Simd& table) {
  table.attention[0] = forward<float>, table.attention[1] = forward<double>;
  table.attention_grad[0] = backward<float>, table.attention_grad[1] = backward<double>;
  table.turn_block[0] = turn<float>, table.turn_block[1] = turn<double>;
}

}  // namespace cpu::PG_CPU_ISA
