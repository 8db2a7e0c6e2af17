// SPDX-License-Identifier: Apache-2.0
// What pooling kernels share: windows that slide over planes, or over blocks of planes, and where those of a strided
// tensor lie. Of the three axes 0 counts depths, 1 rows and 2 columns; a sequence is a plane of one row, a plane a
// block of one depth, and kernels for which kDeep is false know that it is.
#pragma once

#include <algorithm>

#include "dtypes.hpp"
#include "kernel.hpp"
#include "perigee/kernels/resample.hpp"
#include "walk.hpp"

namespace cuda {

// A tensor [n, c, ...]: the first two axes number the planes.
struct PlaneOperand {
  Walk<1> planes;
  int64_t depth = 0, row = 0, column = 0;

  PlaneOperand() = default;
  explicit PlaneOperand(const pg_tensor& t) : planes(walk_of(2, t.shape, t.stride)), column(t.stride[t.rank - 1]) {
    if (t.rank > 3) row = t.stride[t.rank - 2];
    if (t.rank > 4) depth = t.stride[t.rank - 3];
  }
  PG_HD int64_t offset(int64_t d, int64_t h, int64_t w) const { return d * depth + h * row + w * column; }
};

// Which planes are pooled into which: `in` into `out`.
struct PlaneSizes {
  int64_t planes = 1, in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  uint32_t axes = 2;

  PlaneSizes() = default;
  PlaneSizes(const pg_tensor& full, const pg_tensor& pooled) : axes(full.rank - 2) {
    if (full.rank < 3 || full.rank > 5 || full.rank != pooled.rank) pg::fail_support("pooling wants 3 to 5 axes");
    planes = full.shape[0] * full.shape[1];
    for (uint32_t i = 0; i < axes; i++) {
      in[3 - axes + i] = full.shape[2 + i];
      out[3 - axes + i] = pooled.shape[2 + i];
    }
  }
  bool deep() const { return axes == 3; }
  PG_HD int64_t size() const { return in[0] * in[1] * in[2]; }
  PG_HD int64_t pooled() const { return out[0] * out[1] * out[2]; }
};

// The places of one axis that an output looks at: first, first + step, ..., `count` of them, or none.
template <class I>
struct Places {
  I first, step, count;
};

// A window's geometry in index type I.
template <class I>
struct Window {
  using Index = I;
  I size[3], out[3], kernel[3], stride[3], padding[3], dilation[3];

  PG_HD I first(int d, I o) const { return o * stride[d] - padding[d]; }
  PG_HD Places<I> places(int d, I o) const {
    I from = first(d, o), begin = from < 0 ? (dilation[d] - 1 - from) / dilation[d] : 0, end = kernel[d];
    if (from + (kernel[d] - 1) * dilation[d] >= size[d])
      end = from >= size[d] ? 0 : (size[d] - from + dilation[d] - 1) / dilation[d];
    return {from + begin * dilation[d], dilation[d], end - begin};
  }
};

// Of adaptive pooling: each output has its share of an axis.
template <class I>
struct Shares {
  using Index = I;
  I size[3], out[3];

  PG_HD Places<I> places(int d, I o) const {
    auto begin = static_cast<I>(pg::share_begin(o, size[d], out[d]));
    return {begin, 1, static_cast<I>(pg::share_end(o, size[d], out[d])) - begin};
  }
};

struct PoolShape : PlaneSizes {
  int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, padding[3] = {}, dilation[3] = {1, 1, 1};

  PoolShape() = default;
  PoolShape(const pg::KernelCall& call, const pg_tensor& full, const pg_tensor& pooled) : PlaneSizes(full, pooled) {
    read_list(call, "kernel", kernel);
    read_list(call, "kernel", stride);  // which it is where none is given
    read_list(call, "stride", stride);
    read_list(call, "padding", padding);
  }
  // One number stands for all; an empty list leaves what is there.
  void read_list(const pg::KernelCall& call, const char* name, int64_t (&numbers)[3]) const {
    auto list = call.attr<pg_ints>(name);
    if (list.count == 0) return;
    if (list.count != 1 && list.count != axes)
      pg::fail_support(pg::format("%s: %s must be one number or %u", call.op(), name, axes));
    for (uint32_t i = 0; i < axes; i++) numbers[3 - axes + i] = list.value[list.count == 1 ? 0 : i];
  }
  // Whether all that kernels compute fits into 32 bits: numbers of elements, and places up to a window outside a plane.
  bool narrow() const {
    bool near = planes * std::max(size(), pooled()) < kNarrow;
    for (int d = 0; d < 3; d++)
      near = near && in[d] + padding[d] * 2 + kernel[d] * dilation[d] + out[d] * stride[d] < kNarrow / 2;
    return near;
  }
  template <class I>
  Window<I> window() const {
    Window<I> w;
    for (int d = 0; d < 3; d++) {
      w.size[d] = static_cast<I>(in[d]), w.out[d] = static_cast<I>(out[d]);
      w.kernel[d] = static_cast<I>(kernel[d]), w.stride[d] = static_cast<I>(stride[d]);
      w.padding[d] = static_cast<I>(padding[d]), w.dilation[d] = static_cast<I>(dilation[d]);
    }
    return w;
  }
};

// Element p of [planes, depths, rows, columns] as a plane and the places on its axes.
struct PlaneSplit {
  Extent extent[3];
  bool narrow = true;

  PlaneSplit() = default;
  PlaneSplit(int64_t planes, const int64_t (&size)[3]) : narrow(planes * size[0] * size[1] * size[2] < kNarrow) {
    for (int d = 0; d < 3; d++) extent[d] = Extent(size[d]);
  }
  template <bool kDeep>
  PG_HD int64_t split(int64_t p, int64_t (&at)[3]) const {
    at[2] = p;
    at[1] = extent[2].split(at[2], narrow);
    at[0] = extent[1].split(at[1], narrow);
    if constexpr (kDeep) return extent[0].split(at[0], narrow);
    const int64_t plane = at[0];
    at[0] = 0;
    return plane;
  }
};

}  // namespace cuda
