// SPDX-License-Identifier: Apache-2.0
// Windows that slide over the last one, two or three axes: convolutions and pooling.
#pragma once

#include "../rules.hpp"

namespace pg {

inline std::string list_text(const pg_ints& list) {
  std::string text = "{";
  for (int64_t i = 0; i < list.count; i++)
    text += format("%s%lld", i > 0 ? ", " : "", static_cast<long long>(list.value[i]));
  return text + "}";
}

// The numbers of a list attribute, one for each of the `axes` that the window slides over; each at least `least`. One
// number alone stands for all.
inline pg_ints check_list(const ShapeContext& c, const char* attr, uint32_t axes, int64_t least) {
  pg_ints list = c.get<Ints>(attr);
  while (list.count >= 1 && list.count < axes && c.get<Ints>(attr).count == 1) list.value[list.count++] = list.value[0];
  c.need(list.count == axes, "%s has %lld numbers; expected %u", attr, static_cast<long long>(list.count), axes);
  for (uint32_t i = 0; i < axes; i++)
    c.need(list.value[i] >= least, "%s is %s; expected at least %lld", attr, list_text(list).c_str(),
           static_cast<long long>(least));
  return list;
}

// What is added before and behind each axis.
struct Padding {
  int64_t before[3] = {}, after[3] = {};
};

// One number, one for each axis, or two for each axis (before and behind). Sums of them stay within an int64.
inline Padding check_padding(const ShapeContext& c, const char* attr, uint32_t axes) {
  pg_ints list = c.get<Ints>(attr);
  for (int64_t i = 0; i < list.count; i++)
    c.need(list.value[i] <= int64_t{1} << 60, "%s is %s; expected at most 2^60", attr, list_text(list).c_str());
  Padding p;
  if (list.count == 2 * axes) {
    for (uint32_t i = 0; i < axes; i++) p.before[i] = list.value[2 * i], p.after[i] = list.value[2 * i + 1];
    for (uint32_t i = 0; i < 2 * axes; i++)
      c.need(list.value[i] >= 0, "%s is %s; expected at least 0", attr, list_text(list).c_str());
    return p;
  }
  c.need(list.count == 1 || list.count == axes, "%s has %lld numbers; expected %u, or %u for before and behind", attr,
         static_cast<long long>(list.count), axes, 2 * axes);
  list = check_list(c, attr, axes, 0);
  for (uint32_t i = 0; i < axes; i++) p.before[i] = p.after[i] = list.value[i];
  return p;
}

// How often a window fits: (size + padding - dilation (window - 1) - 1) / stride + 1, rounded down, or up for
// `ceil_mode`, where the last window must still begin inside the input or the padding before it.
inline Dim window_count(const ShapeContext& c, uint32_t input, uint32_t axis, Dim window, int64_t stride,
                        int64_t before, int64_t after, int64_t dilation, bool ceil_mode = false) {
  Dim size = c.dim(input, axis);
  Dim room = size + Dim(before) + Dim(after) - (window - Dim(1)) * Dim(dilation) - Dim(1);
  c.need(room.symbolic() || room.value >= 0,
         "%s: axis %u with padding %lld before and %lld behind is smaller than the window of %lld with dilation %lld",
         c.text(input).c_str(), axis + 1, static_cast<long long>(before), static_cast<long long>(after),
         static_cast<long long>(window.value), static_cast<long long>(dilation));
  if (!ceil_mode) return room / Dim(stride) + Dim(1);
  Dim up = (room + Dim(stride - 1)) / Dim(stride);
  return min(up, (size + Dim(before - 1)) / Dim(stride)) + Dim(1);
}

// Attributes of pooling, checked; an empty stride is the kernel.
struct Pooling {
  pg_ints kernel, stride, padding;
};

inline Pooling check_pooling(const ShapeContext& c, uint32_t axes) {
  Pooling p;
  p.kernel = check_list(c, "kernel", axes, 1);
  p.stride = c.get<Ints>("stride").count == 0 ? p.kernel : check_list(c, "stride", axes, 1);
  p.padding = check_list(c, "padding", axes, 0);
  for (uint32_t i = 0; i < axes; i++)
    c.need(p.padding.value[i] <= p.kernel.value[i] / 2, "padding %lld is more than half of the kernel's %lld",
           static_cast<long long>(p.padding.value[i]), static_cast<long long>(p.kernel.value[i]));
  return p;
}

// n times the same number.
inline pg_ints repeated(uint32_t n, int64_t number) {
  pg_ints list{};
  while (list.count < n) list.value[list.count++] = number;
  return list;
}

inline OpBuilder& pooling_attrs(OpBuilder& op, uint32_t axes) {
  return op.attr<Ints>("kernel", repeated(axes, 0), "size of the window along each axis, in elements")
      .required()
      .pair()
      .attr<Ints>("stride", {}, "steps of the window along each axis; the kernel when none are given")
      .pair()
      .attr<Ints>("padding", repeated(axes, 0), "elements added on both sides of each axis")
      .pair();
}

// The shape of adaptive pooling's result: attribute "size", where -1 keeps an axis.
inline Shape adaptive_shape(const ShapeContext& c, uint32_t axes) {
  pg_ints size = check_list(c, "size", axes, -1);
  Shape shape{c.dim(0, 0), c.dim(0, 1)};
  for (uint32_t i = 0; i < axes; i++) {
    Dim in = c.dim(0, i + 2);
    c.need(size.value[i] != 0, "size is %s; expected at least 1, or -1 to keep an axis", list_text(size).c_str());
    c.need(!in.is(0), "%s: axis %u is empty and has no windows", c.text(0).c_str(), i + 3);
    shape.push(size.value[i] == -1 ? in : Dim(size.value[i]));
  }
  return shape;
}

// ---- one axis as two ----
// For devices that have kernels for images only: [N, C, L] becomes [N, C, 1, L].

inline Value with_row(Value v) { return v ? unsqueeze(v, 2) : v; }
inline Value without_row(Value v) { return squeeze(v, make_ints({2})); }

// A list attribute of one axis with the number for the row before it; lists of two (before, behind) become four.
inline pg_ints list_with_row(const AttrReader& attrs, const char* name, int64_t number) {
  pg_ints list = attrs.get<Ints>(name);
  if (list.count == 0) return list;
  if (list.count == 2) return make_ints({number, number, list.value[0], list.value[1]});
  return make_ints({number, list.value[0]});
}

}  // namespace pg
