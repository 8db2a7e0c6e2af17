// SPDX-License-Identifier: Apache-2.0
// conv1d, conv2d, conv3d and their two gradients each. A convolution is linear in each operand, so the three are each
// other's derivatives. conv1d_activation and its kin apply an activation in the same pass.
#include "conv.hpp"

namespace pg::schema_conv {
namespace {

void check_result(const ShapeContext& c, uint32_t dy, const Shape& want) {
  c.check_rank(dy, want.rank, want.rank);
  for (uint32_t i = 0; i < want.rank; i++) c.check_dim(dy, i, want[i], "the shape of the convolution's result");
}

// d: the cotangent of the convolution.
template <uint32_t axes>
void differentiate(GradContext& g, Value d) {
  Value x = g.in(0), weight = g.in(1);
  if (g.needed(0)) g.din(0) = conv_grad_input<axes>(g, d, weight, x);
  if (g.needed(1)) g.din(1) = conv_grad_weight<axes>(g, d, x, weight);
  if (g.needed(2)) g.din(2) = sum(d, axes_but_channels(axes));
}

// What a convolution and one behind an activation share.
template <uint32_t axes>
OpBuilder& declare_product(const char* name) {
  using Text = ConvText<axes>;
  return conv_attrs(declare_op(name).category("neural"), axes)
      .input("x", kFloating, Text::x)
      .input("weight", kFloating, Text::weight)
      .input("bias", kFloating, "[O]", PG_INPUT_OPTIONAL)
      .output("y", Text::y)
      .numeric(PG_NUMERIC_LOWER)
      .shape([](ShapeContext& c) {
        Shape shape = conv_shape(c, axes, 0, 1);
        check_bias(c, 2, shape[1]);
        c.out(0).set(c.dtype(0), shape);
      });
}

template <uint32_t axes>
void declare_forward() {
  using Text = ConvText<axes>;
  OpBuilder& op = declare_product<axes>(Text::forward);
  op.doc(std::string("Cross-correlation of ") + Text::what +
         " with filters. Along each axis the result has (size + padding - dilation (k - 1) - 1) / stride + 1 elements, "
         "rounded down.")
      .saves("x", "weight")
      .grad([](GradContext& g) { differentiate<axes>(g, g.dout(0)); });
  if constexpr (axes == 1)
    op.decompose([](ExpandContext& e) {
      static constinit OpRef image("conv2d", "stride", "padding", "dilation", "groups");
      e.out(0) = without_row(conv_with_row(e, image, with_row(e.in(0)), with_row(e.in(1)), e.in(2)));
    });
}

// An operator of its own, since it keeps the result for backward, which the convolution does not.
template <uint32_t axes>
void declare_activated() {
  using Text = ConvText<axes>;
  declare_product<axes>(Text::activated)
      .doc(std::string("An activation of ") + Text::forward +
           "(x, weight, bias), applied while the result is written: the same bits as one after the other.")
      .choice("activation", {"relu"}, 0, "max(y, 0)")
      .saves("x", "weight", "y")
      .grad([](GradContext& g) {
        static constinit OpRef relu_grad("relu_grad");
        differentiate<axes>(g, Call(g.builder(), relu_grad).input(g.out(0)).input(g.dout(0)).emit());
      })
      .decompose([](ExpandContext& e) {
        static constinit OpRef plain(Text::forward);
        e.out(0) = relu(e.call(plain, e.in(0), e.in(1), e.in(2)));
      });
}

template <uint32_t axes>
void declare_grad_input() {
  using Text = ConvText<axes>;
  OpBuilder& op = conv_attrs(declare_op(Text::grad_input).category("neural"), axes);
  op.doc(std::string("Gradient of ") + Text::forward + "'s x: dy correlated with the transposed filters.")
      .input("dy", kFloating, Text::y)
      .input("weight", kFloating, Text::weight)
      .input("x", kFloating, Text::x, PG_INPUT_META)
      .output("dx", "shape of x")
      .numeric(PG_NUMERIC_LOWER)
      .shape([](ShapeContext& c) {
        c.check_same_dtype(1, 0);
        check_result(c, 0, conv_shape(c, axes, 2, 1));
        c.out(0).set(c.dtype(0), c.shape(2));
      })
      .saves("dy", "weight")
      .grad([](GradContext& g) {
        Value dy = g.in(0), weight = g.in(1), d = g.dout(0);
        if (g.needed(0)) g.din(0) = conv_forward<axes>(g, d, weight);
        if (g.needed(1)) g.din(1) = conv_grad_weight<axes>(g, dy, d, weight);
      });
  if constexpr (axes == 1)
    op.decompose([](ExpandContext& e) {
      static constinit OpRef image("conv2d_grad_input", "stride", "padding", "dilation", "groups");
      Value x = with_row(zeros_like(e.in(2)));  // contents that the core can make a view of
      e.out(0) = without_row(conv_with_row(e, image, with_row(e.in(0)), with_row(e.in(1)), x));
    });
}

template <uint32_t axes>
void declare_grad_weight() {
  using Text = ConvText<axes>;
  OpBuilder& op = conv_attrs(declare_op(Text::grad_weight).category("neural"), axes);
  op.doc(std::string("Gradient of ") + Text::forward + "'s weight: x correlated with dy.")
      .input("dy", kFloating, Text::y)
      .input("x", kFloating, Text::x)
      .input("weight", kFloating, Text::weight, PG_INPUT_META)
      .output("dweight", "shape of weight")
      .numeric(PG_NUMERIC_LOWER)
      .shape([](ShapeContext& c) {
        c.check_same_dtype(1, 0);
        check_result(c, 0, conv_shape(c, axes, 1, 2));
        c.out(0).set(c.dtype(0), c.shape(2));
      })
      .saves("dy", "x")
      .grad([](GradContext& g) {
        Value dy = g.in(0), x = g.in(1), d = g.dout(0);
        if (g.needed(0)) g.din(0) = conv_forward<axes>(g, x, d);
        if (g.needed(1)) g.din(1) = conv_grad_input<axes>(g, dy, d, x);
      });
  if constexpr (axes == 1)
    op.decompose([](ExpandContext& e) {
      static constinit OpRef image("conv2d_grad_weight", "stride", "padding", "dilation", "groups");
      Value weight = with_row(zeros_like(e.in(2)));
      e.out(0) = without_row(conv_with_row(e, image, with_row(e.in(0)), with_row(e.in(1)), weight));
    });
}

template <uint32_t axes>
void declare() {
  declare_forward<axes>();
  declare_activated<axes>();
  declare_grad_input<axes>();
  declare_grad_weight<axes>();
}

const bool declared = [] {
  declare<1>();
  declare<2>();
  declare<3>();
  return true;
}();

}  // namespace
}  // namespace pg::schema_conv
