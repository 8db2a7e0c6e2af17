// SPDX-License-Identifier: Apache-2.0
// Walks over the lines of tensors along one axis, for operators that work on whole lines.
#pragma once

#include <algorithm>
#include <vector>

#include "block_loop.hpp"

namespace cpu {

// Operand 0 decides the lines (all its dimensions but `axis`); the others have the same ones. An operand whose rank is
// one less has no such axis (targets, losses); NULL: not there.
template <int N>
class AxisRows {
 public:
  AxisRows() = default;
  AxisRows(const pg_tensor* const (&tensors)[N], int64_t axis) {
    const pg_tensor& first = *tensors[0];
    length_ = first.rank == 0 ? 1 : first.shape[axis];
    int64_t shape[PG_MAX_RANK], stride[N][PG_MAX_RANK] = {};
    uint32_t rank = 0;
    for (uint32_t i = 0; i < first.rank; i++) {
      if (i == axis) continue;
      shape[rank] = first.shape[i];
      for (int k = 0; k < N; k++) {
        if (tensors[k] == nullptr) continue;
        bool without = tensors[k]->rank < first.rank;
        stride[k][rank] = tensors[k]->stride[without ? rank : i];
      }
      rank++;
    }
    for (int k = 0; k < N; k++) {
      if (tensors[k] == nullptr) continue;
      storage_[k] = storage_of(*tensors[k]);
      if (tensors[k]->rank == first.rank && first.rank > 0) step_[k] = tensors[k]->stride[axis];
    }
    lines_ = pg::make_nest<N>(rank, shape, stride, false);
  }

  int64_t count() const { return lines_.count; }  // lines
  int64_t length() const { return length_; }      // elements of a line
  int64_t step(int k) const { return step_[k]; }
  Storage storage(int k) const { return storage_[k]; }
  template <class T>
  T* line(int k, T* base, int64_t i) const {
    return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(base) +
                                static_cast<uintptr_t>(lines_.offset(k, i) * kStorageBytes[storage_[k]]));
  }
  // Whether lines of operand k can be used as they lie.
  bool direct(int k, Storage type) const { return storage_[k] == type && (step_[k] == 1 || length_ <= 1); }

  // A line in the given type, in `buffer` (length elements) unless it is direct.
  const void* load(int k, const void* line, Storage type, void* buffer) const {
    if (direct(k, type)) return line;
    if (step_[k] == 1) {
      convert(storage_[k], type, line, buffer, length_);
      return buffer;
    }
    int bytes = kStorageBytes[storage_[k]];
    alignas(64) char raw[kBlock * 8];
    for (int64_t p = 0; p < length_; p += kBlock) {
      int64_t n = std::min(kBlock, length_ - p);
      const char* from = static_cast<const char*>(line) + p * step_[k] * bytes;
      gather(from, bytes, 1, &length_, &step_[k], 0, n, raw);
      convert(storage_[k], type, raw, static_cast<char*>(buffer) + p * kStorageBytes[type], n);
    }
    return buffer;
  }
  void store(int k, void* line, Storage type, const void* buffer) const {
    if (step_[k] == 1) return convert(type, storage_[k], buffer, line, length_);
    int bytes = kStorageBytes[storage_[k]];
    alignas(64) char raw[kBlock * 8];
    for (int64_t p = 0; p < length_; p += kBlock) {
      int64_t n = std::min(kBlock, length_ - p);
      convert(type, storage_[k], static_cast<const char*>(buffer) + p * kStorageBytes[type], raw, n);
      scatter(static_cast<char*>(line) + p * step_[k] * bytes, bytes, 1, &length_, &step_[k], 0, n, raw);
    }
  }

  // body(first, last) over the lines, on several threads where there is enough to do.
  template <class Body>
  void each(const Body& body) const {
    if (lines_.count == 0) return;
    if (lines_.count * length_ <= kGrain / 4) return body(0, lines_.count);
    pg::parallel_for(lines_.count, std::max<int64_t>(1, kGrain / 4 / std::max<int64_t>(1, length_)), body);
  }

 private:
  pg::Nest<N> lines_;
  int64_t length_ = 0, step_[N] = {};
  Storage storage_[N] = {};
};

}  // namespace cpu
