// SPDX-License-Identifier: Apache-2.0
// What kernels/simd/attention.cpp is asked to do.
#pragma once

#include <cstdint>

namespace cpu {

// One head of attention, or some rows of one, in float or double. All is dense: rows are padded to kAttentionPad
// elements with zeros, keys to blocks of kAttentionKeys, and `kt`, `vt` hold each block of k and v turned:
// [width][block]. Of bfloat16, in pairs: a word holds two neighbours of a row in q, dout, kt and vt, and two rows'
// elements of one column in v and k and, for backward, in q_pairs and dout_pairs; results are float.
constexpr int64_t kAttentionKeys = 64, kAttentionPad = 16;
struct AttentionPass {
  int64_t queries, keys, width, value_width;  // widths without the padding
  int64_t query_begin, query_end;             // which queries to do
  int64_t key_begin, key_end;                 // backward: with which keys; key_begin at a block's start
  int32_t causal, mask_kind;                  // 0: no mask, 1: bool, 2: added, in the type computed with
  const void* mask;
  int64_t mask_row, mask_column;    // strides in elements
  double drop;                      // 0: nothing is dropped
  uint64_t seed, offset, first;     // first: number of the head's first weight
  double scale;                     // of scores of pairs; else q is scaled already
  const void *q, *k, *v, *kt, *vt;  // k, vt: backward only
  const void *dout, *delta;         // backward
  const void *q_pairs, *dout_pairs;
  void *out, *lse;     // forward: [queries][padded value width] and [queries]; lse: input of backward
  void *dq, *dk, *dv;  // backward, added to; NULL: not wanted. dq is without the scale
  void* scratch;       // attention_scratch elements
};
constexpr int64_t attention_pad(int64_t width) { return (width + kAttentionPad - 1) / kAttentionPad * kAttentionPad; }
constexpr int64_t kAttentionRows = 48;  // queries of a tile
constexpr int64_t attention_scratch(int64_t value_width) {
  constexpr int64_t tile = kAttentionRows * kAttentionKeys;
  return 2 * tile + kAttentionRows * (attention_pad(value_width) + 2) + tile / 2;  // the last for pairs
}

// By products of pairs of bfloat16; NULL where the processor has none.
struct PairedAttention {
  void (*forward)(const AttentionPass& pass);
  void (*backward)(const AttentionPass& pass);
  // `count` rows of bfloat16 as (count + 1) / 2 rows of pairs of rows; `columns`: a multiple of kAttentionPad.
  void (*pair_rows)(const void* rows, int64_t count, int64_t columns, void* pairs);
};
extern PairedAttention paired_attention;

}  // namespace cpu
