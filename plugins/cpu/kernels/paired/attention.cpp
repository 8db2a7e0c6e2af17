// SPDX-License-Identifier: Apache-2.0
// Attention of bfloat16 by products of pairs of numbers, for processors that have these: scores, sums and gradients are
// float32, weights and slopes are rounded before they are factors.
#include "../simd/attention_tiles.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

using Pair = uint32_t;

// 16 numbers, rounded, in the lower halves of words.
[[gnu::always_inline]] inline __m512i rounded(const float* x) {
  return _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(x)));
}

// Rows of kKeys numbers as pairs of neighbours.
[[gnu::always_inline]] inline void pair_columns(const float* rows, int64_t count, Pair* out) {
  for (int64_t i = 0; i < count * kKeys; i += 32) {
    const auto pairs = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(rows + i + 16), _mm512_loadu_ps(rows + i));
    _mm512_storeu_si512(out + i / 2, (__m512i)pairs);
  }
}
// Rows of kKeys numbers as pairs of rows: the last one with zeros where their number is odd.
[[gnu::always_inline]] inline void pair_rows(const float* rows, int64_t count, Pair* out) {
  for (int64_t i = 0; i < count; i += 2) {
    for (int64_t j = 0; j < kKeys; j += 16) {
      const float* at = rows + i * kKeys + j;
      const __m512i low = rounded(at), high = i + 1 < count ? rounded(at + kKeys) : _mm512_setzero_si512();
      _mm512_storeu_si512(out + i / 2 * kKeys + j, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    }
  }
}

struct Pairs {
  using Number = float;

  // Rows and columns of pairs; `turned`: [width / 2][kKeys] of each block of keys.
  [[gnu::always_inline]] static void score_rows(const AttentionPass& p, const Tile& t, const void* rows, int64_t row,
                                                const void* turned, int64_t width, float* scores) {
    const int64_t depth = (width + 1) / 2;
    const Pair* block = static_cast<const Pair*>(turned) + t.key * depth;
    small_product<Pair>(t.rows, {static_cast<const Pair*>(rows) + t.row * row, row, 1}, block, kKeys, scores, kKeys,
                        Onto::kNothing, [&](int64_t i, int64_t n) {
                          return Extent{seen(p, t, i + n - 1), 0, depth};
                        });
  }
  [[gnu::always_inline]] static void score(const AttentionPass& p, const Tile& t, float* scores) {
    score_rows(p, t, p.q, attention_pad(p.width) / 2, p.kt, p.width, scores);
    const auto scale = static_cast<float>(p.scale);
    PG_LOOP
    for (int64_t i = 0; i < t.rows * kKeys; i++) scores[i] *= scale;
  }
  [[gnu::always_inline]] static void score_slopes(const AttentionPass& p, const Tile& t, float* slopes) {
    score_rows(p, t, p.dout, attention_pad(p.value_width) / 2, p.vt, p.value_width, slopes);
  }
  [[gnu::always_inline]] static void sum_values(const AttentionPass& p, const Tile& t, const float* weights,
                                                float* sums) {
    const int64_t v_row = attention_pad(p.value_width);
    Pair* const narrow = room(p);
    pair_columns(weights, t.rows, narrow);
    small_product<Pair>(t.rows, {narrow, kKeys / 2, 1}, static_cast<const Pair*>(p.v) + t.key / 2 * v_row, v_row, sums,
                        v_row, Onto::kSums, [&](int64_t i, int64_t n) {
                          return Extent{v_row, 0, (seen(p, t, i + n - 1) + 1) / 2};
                        });
  }
  static void sum_gradients(const AttentionPass& p, const Tile& t, const float* weights, const float* slopes) {
    const int64_t q_row = attention_pad(p.width), v_row = attention_pad(p.value_width);
    Pair* const narrow = room(p);
    if (p.dq != nullptr) {
      pair_columns(slopes, t.rows, narrow);
      small_product<Pair>(t.rows, {narrow, kKeys / 2, 1}, static_cast<const Pair*>(p.k) + t.key / 2 * q_row, q_row,
                          static_cast<float*>(p.dq) + t.row * q_row, q_row, Onto::kSums, [&](int64_t i, int64_t n) {
                            return Extent{q_row, 0, (seen(p, t, i + n - 1) + 1) / 2};
                          });
    }
    if (p.dk == nullptr) return;
    const int64_t depth = (t.rows + 1) / 2;
    // Of key j only queries from there on know.
    auto first = [&](int64_t j) { return p.causal != 0 ? most(0, least(t.rows, t.key + j - t.row)) / 2 : 0; };
    pair_rows(weights, t.rows, narrow);
    small_product<Pair>(t.keys, {narrow, 1, kKeys}, static_cast<const Pair*>(p.dout_pairs) + t.row / 2 * v_row, v_row,
                        static_cast<float*>(p.dv) + t.key * v_row, v_row, Onto::kSums, [&](int64_t j, int64_t) {
                          return Extent{v_row, first(j), depth};
                        });
    pair_rows(slopes, t.rows, narrow);
    small_product<Pair>(t.keys, {narrow, 1, kKeys}, static_cast<const Pair*>(p.q_pairs) + t.row / 2 * q_row, q_row,
                        static_cast<float*>(p.dk) + t.key * q_row, q_row, Onto::kSums, [&](int64_t j, int64_t) {
                          return Extent{q_row, first(j), depth};
                        });
  }

 private:
  static Pair* room(const AttentionPass& p) {
    return static_cast<Pair*>(p.scratch) + attention_scratch(p.value_width) - kRows * kKeys / 2;
  }
};

// Rows of bfloat16, `columns` a multiple of 16, as pairs of rows; the last one with zeros where their number is odd.
void pair_narrow_rows(const void* rows, int64_t count, int64_t columns, void* pairs) {
  auto* from = static_cast<const uint16_t*>(rows);
  auto* to = static_cast<Pair*>(pairs);
  for (int64_t i = 0; i < count; i += 2) {
    for (int64_t j = 0; j < columns; j += 16) {
      auto read = [&](int64_t row) {
        return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + row * columns + j)));
      };
      const __m512i low = read(i), high = i + 1 < count ? read(i + 1) : _mm512_setzero_si512();
      _mm512_storeu_si512(to + i / 2 * columns + j, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    }
  }
}

}  // namespace

PairedAttention make_paired_attention() { return {forward<Pairs>, backward<Pairs>, pair_narrow_rows}; }

}  // namespace cpu::PG_CPU_ISA
