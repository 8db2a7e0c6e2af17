// SPDX-License-Identifier: Apache-2.0
// What pooling kernels share: windows that slide over planes, and where planes of a strided tensor lie.
#pragma once

#include <algorithm>

#include "dtypes.hpp"
#include "kernel.hpp"
#include "walk.hpp"

namespace cuda {

// The last two axes are a plane's; the others number the planes.
struct PlaneOperand {
  Walk<1> planes;
  int64_t row = 0, column = 0;

  PlaneOperand() = default;
  explicit PlaneOperand(const pg_tensor& t)
      : planes(walk_of(t.rank - 2, t.shape, t.stride)), row(t.stride[t.rank - 2]), column(t.stride[t.rank - 1]) {}
};

// Which planes are pooled into which: [h, w] into [oh, ow].
struct PlaneSizes {
  int64_t planes = 1, h = 0, w = 0, oh = 0, ow = 0;

  PlaneSizes() = default;
  PlaneSizes(const pg_tensor& full, const pg_tensor& pooled) {
    if (full.rank < 3 || full.rank != pooled.rank) pg::fail_support("pooling wants 3 or 4 axes");
    for (uint32_t i = 0; i + 2 < full.rank; i++) planes *= full.shape[i];
    h = full.shape[full.rank - 2], w = full.shape[full.rank - 1];
    oh = pooled.shape[full.rank - 2], ow = pooled.shape[full.rank - 1];
  }
  PG_HD int64_t size() const { return h * w; }
  PG_HD int64_t pooled() const { return oh * ow; }
};

// A window's geometry in index type I; [0] counts rows, [1] columns.
template <class I>
struct Window {
  I size[2], out[2], kernel[2], stride[2], padding[2], dilation[2];

  PG_HD I first(int d, I o) const { return o * stride[d] - padding[d]; }
  // Taps begin .. end - 1 from `first` on lie inside the plane.
  PG_HD I begin(int d, I first) const { return first < 0 ? (dilation[d] - 1 - first) / dilation[d] : 0; }
  PG_HD I end(int d, I first) const {
    if (first + (kernel[d] - 1) * dilation[d] < size[d]) return kernel[d];
    return first >= size[d] ? 0 : (size[d] - first + dilation[d] - 1) / dilation[d];
  }
};

struct PoolShape : PlaneSizes {
  int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, padding[2] = {0, 0}, dilation[2] = {1, 1};

  PoolShape() = default;
  PoolShape(const pg::KernelCall& call, const pg_tensor& full, const pg_tensor& pooled) : PlaneSizes(full, pooled) {
    read_pair(call, "kernel", kernel);
    read_pair(call, "kernel", stride);  // which it is where none is given
    read_pair(call, "stride", stride);
    read_pair(call, "padding", padding);
  }
  // One number stands for both; an empty list leaves what is there.
  static void read_pair(const pg::KernelCall& call, const char* name, int64_t (&pair)[2]) {
    auto list = call.attr<pg_ints>(name);
    if (list.count > 0) pair[0] = list.value[0], pair[1] = list.value[list.count - 1];
  }
  // Whether all that kernels compute fits into 32 bits: numbers of elements, and places up to a window outside a plane.
  bool narrow() const {
    auto reach = [&](int d, int64_t size, int64_t out) {
      return size + padding[d] * 2 + kernel[d] * dilation[d] + out * stride[d] < kNarrow / 2;
    };
    return planes * std::max(size(), pooled()) < kNarrow && reach(0, h, oh) && reach(1, w, ow);
  }
  template <class I>
  Window<I> window() const {
    Window<I> out;
    for (int d = 0; d < 2; d++) {
      out.size[d] = static_cast<I>(d == 0 ? h : w), out.out[d] = static_cast<I>(d == 0 ? oh : ow);
      out.kernel[d] = static_cast<I>(kernel[d]), out.stride[d] = static_cast<I>(stride[d]);
      out.padding[d] = static_cast<I>(padding[d]), out.dilation[d] = static_cast<I>(dilation[d]);
    }
    return out;
  }
};

// Element p of [planes, rows, columns] as a plane, a row and a column.
struct PlaneSplit {
  Extent rows, columns;
  bool narrow = true;

  PlaneSplit() = default;
  PlaneSplit(int64_t planes, int64_t h, int64_t w) : rows(h), columns(w), narrow(planes * h * w < kNarrow) {}
  PG_HD int64_t operator()(int64_t p, int64_t& row, int64_t& column) const {
    column = p;
    row = columns.split(column, narrow);
    return rows.split(row, narrow);
  }
};

}  // namespace cuda
