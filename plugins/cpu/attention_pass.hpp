// SPDX-License-Identifier: Apache-2.0
// What kernels/simd/attention.cpp is asked to do.
#pragma once

#include <cstdint>

namespace cpu {

// One head of attention, or some rows of one, in float or double. All is dense: rows are padded to kAttentionPad
// elements with zeros, keys to blocks of kAttentionKeys, and `kt`, `vt` hold each block of k and v turned:
// [width][block].
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
  const void *q, *k, *v, *kt, *vt;  // q is scaled already; k, vt: backward only
  const void *dout, *delta;         // backward
  void *out, *lse;                  // forward: [queries][padded value width] and [queries]; lse: input of backward
  void *dq, *dk, *dv;               // backward, added to; NULL: not wanted. dq is without the scale
  void* scratch;                    // attention_scratch elements
};
constexpr int64_t attention_pad(int64_t width) { return (width + kAttentionPad - 1) / kAttentionPad * kAttentionPad; }
constexpr int64_t kAttentionRows = 48;  // queries of a tile
constexpr int64_t attention_scratch(int64_t value_width) {
  return 2 * kAttentionRows * kAttentionKeys + kAttentionRows * (attention_pad(value_width) + 2);
}

}  // namespace cpu
