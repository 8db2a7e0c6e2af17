// SPDX-License-Identifier: Apache-2.0
// Tensors as lines along one axis, for kernels that work on whole lines; prepared once. Either a group of threads has a
// line, or neighbouring lines lie side by side and a thread has one (with others behind it).
#pragma once

#include "reduce_shape.hpp"

namespace cuda {

// Operands 0 and 1 have the axis; 2 and 3 may lack it (targets, losses) or be absent.
constexpr int kLineOperands = 4;

struct LineArguments {
  int64_t length = 0, step[2] = {0, 0};
  int64_t columns = 0, tiles = 0;  // columns: lines side by side; 0: a group of threads a line
  int32_t lanes = 1;
  bool packets = false;   // lines of operands 0 and 1 are read and written in packets
  bool cached = false;    // a line fits into its group's part of the shared memory
  int32_t per_group = 0;  // elements of that part
  Walk<kLineOperands> lines;
};

class LineShape {
 public:
  LineShape() = default;
  // width: elements of a packet; computed: bytes of an element in the compute type.
  LineShape(const pg_tensor* const (&tensors)[kLineOperands], int64_t axis, int64_t width, int64_t computed)
      : width_(width), computed_(computed) {
    const pg_tensor& first = *tensors[0];
    length_ = first.rank == 0 ? 1 : first.shape[axis];
    int64_t shape[PG_MAX_RANK], stride[kLineOperands][PG_MAX_RANK] = {};
    uint32_t rank = 0;
    for (uint32_t i = 0; i < first.rank; i++) {
      if (i == static_cast<uint32_t>(axis)) continue;
      shape[rank] = first.shape[i];
      for (int k = 0; k < kLineOperands; k++) {
        if (tensors[k] == nullptr) continue;
        stride[k][rank] = tensors[k]->stride[tensors[k]->rank < first.rank ? rank : i];
      }
      rank++;
    }
    for (int k = 0; k < 2; k++) {
      if (tensors[k] != nullptr && first.rank > 0) step_[k] = tensors[k]->stride[axis];
    }
    lines_ = Walk<kLineOperands>(pg::make_nest<kLineOperands>(rank, shape, stride, false));
    side_by_side_ = lines_.rank > 0 && step_[0] != 1 && length_ > 1 && inner_stride_of(lines_, 0) == 1;
    packets_ = width > 1 && length_ % width == 0;
    for (int k = 0; k < 2; k++) {
      if (tensors[k] == nullptr) continue;
      packets_ = packets_ && step_[k] == 1;
      for (int i = 0; i < lines_.rank; i++) packets_ = packets_ && lines_.stride[k][i] % width == 0;
    }
  }

  int64_t lines() const { return lines_.count; }
  int64_t length() const { return length_; }

  // And the grid, of at most max_blocks.
  LineArguments arguments(const void* first, const void* second, Grid& grid, int64_t max_blocks = kMaxBlocks) const {
    LineArguments a;
    a.length = length_, a.step[0] = step_[0], a.step[1] = step_[1], a.lines = lines_;
    if (side_by_side_) {
      int64_t inner = inner_of(lines_), outer = inner == 0 ? 0 : lines_.count / inner;
      ColumnsPlan plan = plan_columns(outer, inner, length_, false);
      a.columns = inner, a.tiles = plan.tiles, a.lanes = plan.lanes;
      grid = plan.grid;
    } else {
      uintptr_t addresses = reinterpret_cast<uintptr_t>(first) | reinterpret_cast<uintptr_t>(second);
      a.packets = packets_ && (addresses & 15u) == 0;
      CachedRowsPlan plan = plan_cached_rows(lines_.count, length_, a.packets ? width_ : 1, computed_);
      a.lanes = plan.lanes, a.cached = plan.cached, a.per_group = plan.per_group;
      grid = plan.grid;
    }
    grid.x = std::min(grid.x, static_cast<uint32_t>(max_blocks));
    return a;
  }

 private:
  int64_t width_ = 1, computed_ = 4, length_ = 0, step_[2] = {0, 0};
  Walk<kLineOperands> lines_;
  bool side_by_side_ = false, packets_ = false;
};

}  // namespace cuda
