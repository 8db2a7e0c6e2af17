// SPDX-License-Identifier: Apache-2.0
// Loop nests over strided tensors: dimensions of size 1 dropped, neighbours merged where every operand allows it.
#pragma once

#include <cstdint>

#include "perigee/plugin.h"

namespace pg {

// A nest over N operands of one (broadcast) shape. Strides are in elements; the last dimension is the innermost.
template <int N>
struct Nest {
  int rank = 0;
  int64_t shape[PG_MAX_RANK] = {};
  int64_t stride[N][PG_MAX_RANK] = {};
  int64_t count = 1;

  int64_t inner() const { return rank == 0 ? 1 : shape[rank - 1]; }
  int64_t inner_stride(int operand) const { return rank == 0 ? 1 : stride[operand][rank - 1]; }
  // Element p of the nest's order lies p elements from the operand's start.
  bool linear(int operand) const { return count <= 1 || (rank == 1 && stride[operand][0] == 1); }
  // The same of a nest that other operands keep from being one dimension.
  bool in_order(int operand) const {
    int64_t expected = 1;
    for (int i = rank - 1; i >= 0; expected *= shape[i--]) {
      if (stride[operand][i] != expected) return count <= 1;
    }
    return true;
  }
  // Every element of the operand is the same one.
  bool constant(int operand) const {
    for (int i = 0; i < rank; i++) {
      if (stride[operand][i] != 0) return false;
    }
    return count > 1;
  }
  // Where element p lies.
  int64_t offset(int operand, int64_t p) const {
    if (p == 0) return 0;
    int64_t at = 0;
    for (int i = rank - 1; i > 0; i--) {
      int64_t next = p / shape[i];
      at += (p - next * shape[i]) * stride[operand][i];
      p = next;
    }
    return rank > 0 ? at + p * stride[operand][0] : 0;
  }
};

// The strides that `t` has under a broadcast to `rank` dimensions `shape` (aligned at the end).
inline void broadcast_strides(const pg_tensor& t, uint32_t rank, int64_t* stride) {
  uint32_t lead = rank - t.rank;
  for (uint32_t i = 0; i < rank; i++) stride[i] = i < lead || t.shape[i - lead] == 1 ? 0 : t.stride[i - lead];
}

// Builds the nest. The order is that of operand 0's memory when `reorder` (any order will do for elementwise work),
// else row-major.
template <int N>
Nest<N> make_nest(uint32_t rank, const int64_t* shape, const int64_t (*stride)[PG_MAX_RANK], bool reorder) {
  int order[PG_MAX_RANK], dims = 0;
  Nest<N> nest;
  for (uint32_t i = 0; i < rank; i++) {
    nest.count *= shape[i];
    if (shape[i] != 1) order[dims++] = static_cast<int>(i);
  }
  if (reorder) {
    for (int i = 1; i < dims; i++) {  // insertion sort: outermost has the largest stride of operand 0
      for (int j = i; j > 0 && stride[0][order[j - 1]] < stride[0][order[j]]; j--) {
        int swap = order[j];
        order[j] = order[j - 1];
        order[j - 1] = swap;
      }
    }
  }
  for (int d = 0; d < dims; d++) {
    int from = order[d], last = nest.rank - 1;
    bool merge = last >= 0;
    for (int k = 0; k < N && merge; k++) merge = nest.stride[k][last] == stride[k][from] * shape[from];
    if (!merge) last = nest.rank++;
    nest.shape[last] = merge ? nest.shape[last] * shape[from] : shape[from];
    for (int k = 0; k < N; k++) nest.stride[k][last] = stride[k][from];
  }
  return nest;
}

// The axes of more than one element, the innermost first, to `order`; how many there are.
inline int axes_by_stride(const pg_tensor& t, int* order) {
  int count = 0;
  for (int i = static_cast<int>(t.rank) - 1; i >= 0; i--) {
    if (t.shape[i] == 1) continue;
    int at = count++;
    for (; at > 0 && t.stride[order[at - 1]] > t.stride[i]; at--) order[at] = order[at - 1];
    order[at] = i;
  }
  return count;
}

// Without gaps, in any order of axes.
inline bool fills_memory(const pg_tensor& t) {
  int order[PG_MAX_RANK];
  const int count = axes_by_stride(t, order);
  int64_t expected = 1;
  bool dense = true;
  for (int i = 0; i < count; i++) {
    if (t.shape[order[i]] == 0) return true;
    dense = dense && t.stride[order[i]] == expected;
    expected *= t.shape[order[i]];
  }
  return dense;
}

// Row-major and without gaps. Of a tensor without elements the strides say nothing.
inline bool is_contiguous(const pg_tensor& t) {
  int64_t expected = 1;
  bool dense = true;
  for (uint32_t i = t.rank; i-- > 0;) {
    if (t.shape[i] == 0) return true;
    if (t.shape[i] != 1 && t.stride[i] != expected) dense = false;
    expected *= t.shape[i];
  }
  return dense;
}

}  // namespace pg
