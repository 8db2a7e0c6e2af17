// SPDX-License-Identifier: Apache-2.0
// Attention in float and double.
#include "attention_tiles.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

template <class T>
struct Floats {
  using Number = T;

  // scores = q k' for the tile, what no query of six sees left out.
  [[gnu::always_inline]] static void score_rows(const AttentionPass& p, const Tile& t, const T* q, int64_t q_row,
                                                const void* turned, int64_t width, T* scores) {
    const T* block = static_cast<const T*>(turned) + t.key * width;  // blocks of kKeys rows of k, each [width][kKeys]
    small_product<T>(t.rows, {q + t.row * q_row, q_row, 1}, block, kKeys, scores, kKeys, Onto::kNothing,
                     [&](int64_t i, int64_t n) {
                       return Extent{seen(p, t, i + n - 1), 0, width};
                     });
  }

  [[gnu::always_inline]] static void score(const AttentionPass& p, const Tile& t, T* scores) {
    score_rows(p, t, static_cast<const T*>(p.q), attention_pad(p.width), p.kt, p.width, scores);
  }
  [[gnu::always_inline]] static void score_slopes(const AttentionPass& p, const Tile& t, T* slopes) {
    score_rows(p, t, static_cast<const T*>(p.dout), attention_pad(p.value_width), p.vt, p.value_width, slopes);
  }
  [[gnu::always_inline]] static void sum_values(const AttentionPass& p, const Tile& t, const T* weights, T* sums) {
    const int64_t v_row = attention_pad(p.value_width);
    small_product<T>(t.rows, {weights, kKeys, 1}, static_cast<const T*>(p.v) + t.key * v_row, v_row, sums, v_row,
                     Onto::kSums, [&](int64_t i, int64_t n) {
                       return Extent{v_row, 0, seen(p, t, i + n - 1)};
                     });
  }
  static void sum_gradients(const AttentionPass& p, const Tile& t, const T* weights, const T* slopes) {
    int64_t q_row = attention_pad(p.width), v_row = attention_pad(p.value_width);
    auto *q = static_cast<const T*>(p.q), *dout = static_cast<const T*>(p.dout);
    if (p.dq != nullptr) {
      small_product<T>(t.rows, {slopes, kKeys, 1}, static_cast<const T*>(p.k) + t.key * q_row, q_row,
                       static_cast<T*>(p.dq) + t.row * q_row, q_row, Onto::kSums, [&](int64_t i, int64_t n) {
                         return Extent{q_row, 0, seen(p, t, i + n - 1)};
                       });
    }
    if (p.dk == nullptr) return;
    // Of key j only queries from `first` on know.
    auto first = [&](int64_t j) { return p.causal != 0 ? most(0, least(t.rows, t.key + j - t.row)) : 0; };
    small_product<T>(t.keys, {weights, 1, kKeys}, dout + t.row * v_row, v_row, static_cast<T*>(p.dv) + t.key * v_row,
                     v_row, Onto::kSums, [&](int64_t j, int64_t) {
                       return Extent{v_row, first(j), t.rows};
                     });
    small_product<T>(t.keys, {slopes, 1, kKeys}, q + t.row * q_row, q_row, static_cast<T*>(p.dk) + t.key * q_row, q_row,
                     Onto::kSums, [&](int64_t j, int64_t) {
                       return Extent{q_row, first(j), t.rows};
                     });
  }
};

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
  table.attention[0] = forward<Floats<float>>, table.attention[1] = forward<Floats<double>>;
  table.attention_grad[0] = backward<Floats<float>>, table.attention_grad[1] = backward<Floats<double>>;
  table.turn_block[0] = turn<float>, table.turn_block[1] = turn<double>;
}

}  // namespace cpu::PG_CPU_ISA
