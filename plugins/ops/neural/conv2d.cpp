// SPDX-License-Identifier: Apache-2.0
// conv2d and its two gradients. It is linear in each operand, so the three are each other's derivatives.
#include "window.hpp"

namespace pg {
namespace {

OpBuilder& conv_attrs(OpBuilder& op) {
  return op.attr<Ints>("stride", make_ints({1, 1}), "steps of the window down and right")
      .pair()
      .attr<Ints>("padding", make_ints({0, 0}), "zeros added above and below, left and right")
      .pair()
      .attr<Ints>("dilation", make_ints({1, 1}), "distance of the window's elements down and right")
      .pair()
      .attr<int>("groups", 1, "channels of x and y are split into that many independent groups");
}

// Shape of y for x and weight at these inputs.
Shape conv_shape(const ShapeContext& c, uint32_t x, uint32_t weight) {
  c.check_rank(x, 4, 4);
  c.check_rank(weight, 4, 4);
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
  pg_ints stride = check_pair(c, "stride", 1), padding = check_pair(c, "padding", 0);
  pg_ints dilation = check_pair(c, "dilation", 1);
  Shape shape{c.dim(x, 0), out_channels};
  for (uint32_t i = 0; i < 2; i++)
    shape.push(window_count(c, x, i + 2, c.dim(weight, i + 2), stride.value[i], padding.value[i], dilation.value[i]));
  return shape;
}

void check_result(const ShapeContext& c, uint32_t dy, const Shape& want) {
  c.check_rank(dy, 4, 4);
  for (uint32_t i = 0; i < 4; i++) c.check_dim(dy, i, want[i], "the shape of the convolution's result");
}

Value forward(const ValueContext& c, Value x, Value weight) {
  static constinit OpRef op("conv2d");
  return c.call(op, x, weight, Value{});
}
Value grad_input(const ValueContext& c, Value dy, Value weight, Value x) {
  static constinit OpRef op("conv2d_grad_input");
  return c.call(op, dy, weight, x);
}
Value grad_weight(const ValueContext& c, Value dy, Value x, Value weight) {
  static constinit OpRef op("conv2d_grad_weight");
  return c.call(op, dy, x, weight);
}

const bool declared = [] {
  conv_attrs(declare_op("conv2d").category("neural"))
      .doc(
          "Cross-correlation of images with filters. The result has "
          "(H + 2 padding - dilation (kh - 1) - 1) / stride + 1 rows, rounded down, and columns likewise.")
      .input("x", kFloating, "[N, C, H, W]")
      .input("weight", kFloating, "[O, C / groups, kh, kw]")
      .input("bias", kFloating, "[O]", PG_INPUT_OPTIONAL)
      .output("y", "[N, O, H', W']")
      .numeric(PG_NUMERIC_LOWER)
      .shape([](ShapeContext& c) {
        Shape shape = conv_shape(c, 0, 1);
        if (c.has(2)) {
          c.check_rank(2, 1, 1);
          c.check_dim(2, 0, shape[1], "the output channels of weight");
          c.check_same_dtype(2, 0);
        }
        c.out(0).set(c.dtype(0), shape);
      })
      .saves("x", "weight")
      .grad([](GradContext& g) {
        Value x = g.in(0), weight = g.in(1), dy = g.dout(0);
        if (g.needed(0)) g.din(0) = grad_input(g, dy, weight, x);
        if (g.needed(1)) g.din(1) = grad_weight(g, dy, x, weight);
        if (g.needed(2)) g.din(2) = sum(dy, make_ints({0, 2, 3}));
      });

  conv_attrs(declare_op("conv2d_grad_input").category("neural"))
      .doc("Gradient of conv2d's x: dy correlated with the transposed filters.")
      .input("dy", kFloating, "[N, O, H', W']")
      .input("weight", kFloating, "[O, C / groups, kh, kw]")
      .input("x", kFloating, "[N, C, H, W]", PG_INPUT_META)
      .output("dx", "shape of x")
      .numeric(PG_NUMERIC_LOWER)
      .shape([](ShapeContext& c) {
        c.check_same_dtype(1, 0);
        check_result(c, 0, conv_shape(c, 2, 1));
        c.out(0).set(c.dtype(0), c.shape(2));
      })
      .saves("dy", "weight")
      .grad([](GradContext& g) {
        Value dy = g.in(0), weight = g.in(1), d = g.dout(0);
        if (g.needed(0)) g.din(0) = forward(g, d, weight);
        if (g.needed(1)) g.din(1) = grad_weight(g, dy, d, weight);
      });

  conv_attrs(declare_op("conv2d_grad_weight").category("neural"))
      .doc("Gradient of conv2d's weight: x correlated with dy.")
      .input("dy", kFloating, "[N, O, H', W']")
      .input("x", kFloating, "[N, C, H, W]")
      .input("weight", kFloating, "[O, C / groups, kh, kw]", PG_INPUT_META)
      .output("dweight", "shape of weight")
      .numeric(PG_NUMERIC_LOWER)
      .shape([](ShapeContext& c) {
        c.check_same_dtype(1, 0);
        check_result(c, 0, conv_shape(c, 1, 2));
        c.out(0).set(c.dtype(0), c.shape(2));
      })
      .saves("dy", "x")
      .grad([](GradContext& g) {
        Value dy = g.in(0), x = g.in(1), d = g.dout(0);
        if (g.needed(0)) g.din(0) = forward(g, x, d);
        if (g.needed(1)) g.din(1) = grad_input(g, dy, d, x);
      });
  return true;
}();

}  // namespace
}  // namespace pg
