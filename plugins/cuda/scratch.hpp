// SPDX-License-Identifier: Apache-2.0
// Pieces of a kernel's workspace, and dense copies of operands in them.
#pragma once

#include <cstdint>
#include <vector>

#include "copy.hpp"

namespace cuda {

// Counts at prepare, where each piece lies; the launch adds the workspace's address.
class Scratch {
 public:
  static constexpr uint64_t kAlignment = 256;
  uint64_t take(uint64_t bytes) {
    uint64_t at = bytes_;
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
};

inline void* piece(void* workspace, uint64_t at) { return static_cast<char*>(workspace) + at; }

// A row-major copy of a strided operand.
class OperandCopy {
 public:
  OperandCopy() = default;
  OperandCopy(uint32_t dtype, std::vector<int64_t> shape, std::vector<int64_t> stride, Scratch& scratch)
      : dtype_(dtype), shape_(std::move(shape)), stride_(std::move(stride)), dense_(shape_.size()) {
    int64_t count = 1;
    for (size_t i = shape_.size(); i-- > 0;) {
      dense_[i] = count;
      count *= shape_[i];
    }
    at_ = scratch.take(static_cast<uint64_t>(count * pg::dtype_bytes(dtype)));
    needed_ = true;
  }
  bool needed() const { return needed_; }
  const std::vector<int64_t>& strides() const { return dense_; }  // of the copy

  // Where the operand is to be read: the copy, made now, or, where none is needed, the operand.
  const void* run(cudaStream_t stream, const void* operand, void* workspace) const {
    if (!needed_) return operand;
    void* target = piece(workspace, at_);
    copy_tensor(stream, describe(target, dense_), describe(const_cast<void*>(operand), stride_));
    return target;
  }

 private:
  pg_tensor describe(void* address, const std::vector<int64_t>& stride) const {
    pg_tensor t{};
    t.size = PG_SIZE(pg_tensor, components);
    t.dtype_code = static_cast<uint16_t>(dtype_ >> 16), t.dtype_bits = static_cast<uint16_t>(dtype_ & 0xffffu);
    t.rank = static_cast<uint32_t>(shape_.size());
    t.shape = shape_.data(), t.stride = stride.data();
    t.buffer = reinterpret_cast<uint64_t>(address);
    return t;
  }

  uint32_t dtype_ = 0;
  std::vector<int64_t> shape_, stride_, dense_;
  uint64_t at_ = 0;
  bool needed_ = false;
};

}  // namespace cuda
