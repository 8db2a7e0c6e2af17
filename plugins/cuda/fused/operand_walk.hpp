// SPDX-License-Identifier: Apache-2.0
// How the operands of a generated kernel lie, and what a thread takes at a time.
#pragma once

#include <string>
#include <vector>

#include "source.hpp"

namespace cuda::fused {

// Axes of one element are dropped, the others put in the order in which the results lie, neighbours merged where all
// operands allow it. Operands whose strides are equal then share a layout.
class OperandWalk {
 public:
  // Appends to the source's operands, axes and strides. `like`: what the kernel counts through. length: of the lines
  // that packets must not cross; 0: there are none. widest: bytes of an element of what else is read in packets.
  OperandWalk(const pg_tensor& like, const std::vector<const pg_tensor*>& tensors, Source& source, int64_t length = 0,
              int64_t widest = 1);

  size_t rank() const { return shape_.size(); }
  size_t layouts() const { return layouts_.size(); }
  // Elements lie in a row wherever they lie at all, so that a packet's number is its place.
  bool linear() const;
  bool wide() const { return wide_; }
  // The members of the kernel's parameter for axes and strides, and the statement that finds a packet's place.
  std::string members() const;
  std::string locate(const char* item) const;
  // Of operand k, for a load or a store: its place, and whether the packet is one access.
  std::string place(uint32_t k) const;
  std::string whole(uint32_t k, const char* count) const;

 private:
  void merge(const pg_tensor& like, const std::vector<std::vector<int64_t>>& given);
  void choose_width();
  void describe();

  Source& source_;
  int64_t length_, widest_;
  std::vector<int64_t> shape_;
  std::vector<std::vector<int64_t>> lanes_, layouts_;  // strides, by operand; those that differ
  bool wide_ = false;
};

}  // namespace cuda::fused
