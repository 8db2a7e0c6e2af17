// SPDX-License-Identifier: Apache-2.0
// Windows that slide over the last two axes: convolutions and pooling.
#pragma once

#include "../rules.hpp"

namespace pg {

// A pair of numbers, each at least `least`.
inline pg_ints check_pair(const ShapeContext& c, const char* attr, int64_t least) {
  pg_ints pair = c.get<Ints>(attr);
  c.need(pair.count == 2, "%s has %lld numbers; expected 2", attr, static_cast<long long>(pair.count));
  for (int i = 0; i < 2; i++)
    c.need(pair.value[i] >= least, "%s is {%lld, %lld}; expected at least %lld", attr,
           static_cast<long long>(pair.value[0]), static_cast<long long>(pair.value[1]), static_cast<long long>(least));
  return pair;
}

// How often a window fits: (size + 2 padding - dilation (window - 1) - 1) / stride + 1, rounded down, or up for
// `ceil_mode`, where the last window must still begin inside the input or its left padding.
inline Dim window_count(const ShapeContext& c, uint32_t input, uint32_t axis, Dim window, int64_t stride,
                        int64_t padding, int64_t dilation, bool ceil_mode = false) {
  Dim size = c.dim(input, axis);
  Dim room = size + Dim(padding) * Dim(2) - (window - Dim(1)) * Dim(dilation) - Dim(1);
  c.need(room.symbolic() || room.value >= 0,
         "%s: axis %u with padding %lld on both sides is smaller than the window of %lld with dilation %lld",
         c.text(input).c_str(), axis + 1, static_cast<long long>(padding), static_cast<long long>(window.value),
         static_cast<long long>(dilation));
  if (!ceil_mode) return room / Dim(stride) + Dim(1);
  Dim up = (room + Dim(stride - 1)) / Dim(stride);
  return min(up, (size + Dim(padding - 1)) / Dim(stride)) + Dim(1);
}

// Attributes of pooling, checked; an empty stride is the kernel.
struct Pooling {
  pg_ints kernel, stride, padding;
};

inline Pooling check_pooling(const ShapeContext& c) {
  Pooling p;
  p.kernel = check_pair(c, "kernel", 1);
  p.stride = c.get<Ints>("stride").count == 0 ? p.kernel : check_pair(c, "stride", 1);
  p.padding = check_pair(c, "padding", 0);
  for (int i = 0; i < 2; i++)
    c.need(p.padding.value[i] * 2 <= p.kernel.value[i], "padding %lld is more than half of the kernel's %lld",
           static_cast<long long>(p.padding.value[i]), static_cast<long long>(p.kernel.value[i]));
  return p;
}

inline OpBuilder& pooling_attrs(OpBuilder& op) {
  return op.attr<Ints>("kernel", {}, "height and width of the window, in elements")
      .required()
      .pair()
      .attr<Ints>("stride", {}, "steps of the window down and right; the kernel when none are given")
      .pair()
      .attr<Ints>("padding", make_ints({0, 0}), "elements added above and below, left and right")
      .pair();
}

}  // namespace pg
