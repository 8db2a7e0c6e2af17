// SPDX-License-Identifier: Apache-2.0
// What convolutions and their transposes share: names by the number of axes that the filters slide over, attributes,
// shape rule.
#pragma once

#include "window.hpp"

namespace pg {

template <uint32_t axes>
struct ConvText;
template <>
struct ConvText<1> {
  static constexpr const char *forward = "conv1d", *grad_input = "conv1d_grad_input",
                              *grad_weight = "conv1d_grad_weight", *transpose = "conv_transpose1d",
                              *activated = "conv1d_activation", *grad = "conv1d_grad";
  static constexpr const char *x = "[N, C, L]", *y = "[N, O, L']", *weight = "[O, C / groups, k]",
                              *turned = "[C, O / groups, k]", *what = "sequences";
};
template <>
struct ConvText<2> {
  static constexpr const char *forward = "conv2d", *grad_input = "conv2d_grad_input",
                              *grad_weight = "conv2d_grad_weight", *transpose = "conv_transpose2d",
                              *activated = "conv2d_activation", *grad = "conv2d_grad";
  static constexpr const char *x = "[N, C, H, W]", *y = "[N, O, H', W']", *weight = "[O, C / groups, kh, kw]",
                              *turned = "[C, O / groups, kh, kw]", *what = "images";
};
template <>
struct ConvText<3> {
  static constexpr const char *forward = "conv3d", *grad_input = "conv3d_grad_input",
                              *grad_weight = "conv3d_grad_weight", *transpose = "conv_transpose3d",
                              *activated = "conv3d_activation", *grad = "conv3d_grad";
  static constexpr const char *x = "[N, C, D, H, W]", *y = "[N, O, D', H', W']",
                              *weight = "[O, C / groups, kd, kh, kw]", *turned = "[C, O / groups, kd, kh, kw]",
                              *what = "volumes";
};

inline OpBuilder& conv_attrs(OpBuilder& op, uint32_t axes) {
  return op.attr<Ints>("stride", repeated(axes, 1), "steps of the window along each axis")
      .pair()
      .attr<Ints>("padding", repeated(axes, 0),
                  "zeros added on both sides of each axis; twice as many numbers: before and behind")
      .pair()
      .attr<Ints>("dilation", repeated(axes, 1), "distance of the window's elements along each axis")
      .pair()
      .attr<int>("groups", 1, "channels of x and y are split into that many independent groups");
}

// Shape of y for x and weight at these inputs.
inline Shape conv_shape(const ShapeContext& c, uint32_t axes, uint32_t x, uint32_t weight) {
  c.check_rank(x, axes + 2, axes + 2);
  c.check_rank(weight, axes + 2, axes + 2);
  c.check_same_dtype(weight, x);
  int64_t groups = c.get<int>("groups");
  c.need(groups >= 1, "groups is %lld; expected at least 1", static_cast<long long>(groups));
  Dim out_channels = c.dim(weight, 0);
  c.need((c.dim(weight, 1) * Dim(groups)).may_equal(c.dim(x, 1)),
         "%s: axis 2 is %lld channels; expected %lld, those of %s times %lld groups", c.text(x).c_str(),
         static_cast<long long>(c.dim(x, 1).value), static_cast<long long>((c.dim(weight, 1) * Dim(groups)).value),
         c.text(weight).c_str(), static_cast<long long>(groups));
  c.need(out_channels.symbolic() || out_channels.value % groups == 0,
         "%s: the %lld output channels do not split into %lld groups", c.text(weight).c_str(),
         static_cast<long long>(out_channels.value), static_cast<long long>(groups));
  pg_ints stride = check_list(c, "stride", axes, 1), dilation = check_list(c, "dilation", axes, 1);
  Padding padding = check_padding(c, "padding", axes);
  Shape shape{c.dim(x, 0), out_channels};
  for (uint32_t i = 0; i < axes; i++)
    shape.push(window_count(c, x, i + 2, c.dim(weight, i + 2), stride.value[i], padding.before[i], padding.after[i],
                            dilation.value[i]));
  return shape;
}

inline void check_bias(const ShapeContext& c, uint32_t bias, Dim channels) {
  if (!c.has(bias)) return;
  c.check_rank(bias, 1, 1);
  c.check_dim(bias, 0, channels, "the output channels of weight");
  c.check_same_dtype(bias, 0);
}

// All axes but that of channels: what a bias' gradient sums over.
inline pg_ints axes_but_channels(uint32_t axes) {
  pg_ints list = make_ints({0});
  for (uint32_t i = 0; i < axes; i++) list.value[list.count++] = i + 2;
  return list;
}

// ---- the three products, each of which is linear in both operands ----

template <uint32_t axes>
Value conv_forward(const ValueContext& c, Value x, Value weight) {
  static constinit OpRef op(ConvText<axes>::forward);
  return c.call(op, x, weight, Value{});
}
template <uint32_t axes>
Value conv_grad_input(const ValueContext& c, Value dy, Value weight, Value x) {
  static constinit OpRef op(ConvText<axes>::grad_input);
  return c.call(op, dy, weight, x);
}
template <uint32_t axes>
Value conv_grad_weight(const ValueContext& c, Value dy, Value x, Value weight) {
  static constinit OpRef op(ConvText<axes>::grad_weight);
  return c.call(op, dy, x, weight);
}

// A call of the operator on images that does the work of this one on sequences.
inline Value conv_with_row(const ValueContext& c, const OpRef& op, Value a, Value b, Value third) {
  return Call(c.builder(), op)
      .input(a)
      .input(b)
      .input(third)
      .set(0, list_with_row(c, "stride", 1))
      .set(1, list_with_row(c, "padding", 0))
      .set(2, list_with_row(c, "dilation", 1))
      .set(3, c.get<int>("groups"))
      .emit();
}

}  // namespace pg
