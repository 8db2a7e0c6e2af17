// SPDX-License-Identifier: Apache-2.0
// Dense tensors joined into a dense one: blocks of each by turns. What cat and stack come to where nothing is strided.
#pragma once

#include <algorithm>
#include <vector>

#include "copy_block.hpp"
#include "perigee/kernels/strided.hpp"
#include "storage.hpp"

namespace cpu {

class Join {
 public:
  // Along an axis of the result, which all inputs share the sizes in front of.
  Join(const pg::KernelCall& call, int64_t axis) {
    const pg_tensor& out = call.out(0);
    dense_ = pg::is_contiguous(out);
    for (int64_t i = 0; i < axis; i++) before_ *= out.shape[i];
    for (uint32_t i = 0; i < call.input_count(); i++) {
      dense_ = dense_ && pg::is_contiguous(call.in(i));
      int64_t count = pg::element_count(call.in(i));
      blocks_.push_back(before_ > 0 ? count / before_ * kStorageBytes[storage_of(out)] : 0);
      row_ += blocks_.back();
    }
    // One large block a tensor: copies that share the work are faster.
    dense_ = dense_ && (before_ > 1 || row_ <= kGrain * 4);
  }
  explicit operator bool() const { return dense_; }
  void run(const pg_launch& launch) const {
    char* out = pg::output<char>(launch, 0);
    if (out == nullptr) return;
    std::vector<const char*> from(blocks_.size());
    for (uint32_t i = 0; i < blocks_.size(); i++) from[i] = blocks_[i] > 0 ? pg::input<const char>(launch, i) : nullptr;
    auto piece = [ =, this, &from ](int64_t begin, int64_t end) __attribute__((always_inline)) {
      char* to = out + begin * row_;
      for (int64_t b = begin; b < end; b++) {
        for (size_t i = 0; i < blocks_.size(); i++) {
          copy_block(to, from[i] + b * blocks_[i], blocks_[i]);
          to += blocks_[i];
        }
      }
    };
    if (before_ * row_ <= kGrain * 4) return pg::cpu::call_vector(piece, 0, before_);
    pg::cpu::vector_for(before_, std::max<int64_t>(1, kGrain * 4 / std::max<int64_t>(row_, 1)), piece);
  }

 private:
  bool dense_ = false;
  int64_t before_ = 1, row_ = 0;  // row: bytes of all blocks
  std::vector<int64_t> blocks_;   // bytes
};

}  // namespace cpu
