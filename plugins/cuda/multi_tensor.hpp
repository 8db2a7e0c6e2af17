// SPDX-License-Identifier: Apache-2.0
// Kernels over many tensors in one launch: what a launch's arguments say of each tensor, of N operands a tensor, and
// how blocks are dealt out to them. Host arithmetic; kernels take the table by value.
#pragma once

#include <vector>

#include "grid.hpp"
#include "walk.hpp"

namespace cuda {

constexpr int kTableBytes = 3600;  // of a launch's 4 KB of arguments
constexpr int64_t kChunk = 4096;   // elements of a tensor that a block takes

enum FloatCode : uint8_t { kCodeF32, kCodeF16, kCodeBF16, kCodeF64 };
inline uint8_t float_code(uint32_t dtype) {
  return dtype == PG_F32 ? kCodeF32 : dtype == PG_F16 ? kCodeF16 : dtype == PG_BF16 ? kCodeBF16 : kCodeF64;
}

constexpr int tensors_of_table(int operands) { return kTableBytes / (8 * operands + 8 + 4 + operands + 1); }

template <int N>
struct TensorTable {
  static constexpr int kTensors = tensors_of_table(N);
  char* at[N][kTensors];
  int64_t size[kTensors];
  uint32_t first_block[kTensors];
  uint8_t code[N][kTensors];
  uint8_t aligned[kTensors];  // whether every operand may be read four elements at a time
  int32_t count;

  // The tensor that a block belongs to.
  PG_HD int find(uint32_t block) const {
    int low = 0, high = count;
    while (high - low > 1) {
      int middle = (low + high) / 2;
      if (first_block[middle] <= block)
        low = middle;
      else
        high = middle;
    }
    return low;
  }
};

// A tensor's operands as they were prepared.
template <int N>
struct TensorItem {
  pg::Nest<N> nest;
  bool present[N] = {}, dense = true;
  uint8_t code[N] = {};

  // tensors[k]: operand k, or NULL.
  TensorItem(const pg_tensor* const (&tensors)[N], uint8_t (*code_of)(uint32_t dtype)) {
    int64_t stride[N][PG_MAX_RANK] = {};
    for (int k = 0; k < N; k++) {
      if (tensors[k] == nullptr) continue;
      present[k] = true;
      code[k] = code_of(pg_dtype(*tensors[k]));
      for (uint32_t d = 0; d < tensors[k]->rank; d++) stride[k][d] = tensors[k]->stride[d];
    }
    nest = pg::make_nest<N>(tensors[0]->rank, tensors[0]->shape, stride, true);
    for (int k = 0; k < N; k++) dense = dense && (!present[k] || nest.linear(k));
  }

 private:
  static uint32_t pg_dtype(const pg_tensor& t) { return PG_DTYPE(t.dtype_code, t.dtype_bits); }
};

// Fills tables with dense tensors and hands out each full one.
template <int N>
class TableFiller {
 public:
  TableFiller() { table_.count = 0; }

  // Room for one more is needed: launch(table, blocks) is called when there is none, and at the end by flush.
  template <class Launch>
  void add(const TensorItem<N>& item, char* const (&at)[N], const Launch& launch) {
    if (item.nest.count == 0) return;
    int64_t blocks = divide_up(item.nest.count, kChunk);
    if (table_.count == TensorTable<N>::kTensors || blocks_ + blocks > (int64_t{1} << 30)) flush(launch);
    int i = table_.count++;
    bool aligned = true;
    for (int k = 0; k < N; k++) {
      table_.at[k][i] = item.present[k] ? at[k] : nullptr;
      table_.code[k][i] = item.code[k];
      uintptr_t bytes = item.code[k] == kCodeF32 || item.code[k] == kCodeF64 ? 16 : 8;
      aligned = aligned && reinterpret_cast<uintptr_t>(table_.at[k][i]) % bytes == 0;
    }
    table_.aligned[i] = aligned;
    table_.size[i] = item.nest.count;
    table_.first_block[i] = static_cast<uint32_t>(blocks_);
    blocks_ += blocks;
  }
  template <class Launch>
  void flush(const Launch& launch) {
    if (table_.count > 0) launch(table_, static_cast<uint32_t>(blocks_));
    table_.count = 0;
    blocks_ = 0;
  }

 private:
  TensorTable<N> table_;
  int64_t blocks_ = 0;
};

}  // namespace cuda
