// SPDX-License-Identifier: Apache-2.0
// conv1d, conv2d, conv3d and their two gradients each. A convolution is linear in each operand, so the three are each
// other's derivatives. conv1d_activation and its kin apply an activation in the same pass; conv1d_grad and its kin are
// all gradients of either in one pass over dy.
#include "conv.hpp"

namespace pg::schema_conv {
namespace {

void check_result(const ShapeContext& c, uint32_t dy, const Shape& want) {
  c.check_rank(dy, want.rank, want.rank);
  for (uint32_t i = 0; i < want.rank; i++) c.check_dim(dy, i, want[i], "the shape of the convolution's result");
}

Value behind_relu(Value y, Value d) { return y ? relu_grad(y, d) : d; }

// dy: the cotangent of the convolution, or of relu of it, which is y.
template <uint32_t axes>
void differentiate(GradContext& g, Value dy, Value y = {}) {
  static constinit OpRef op(ConvText<axes>::grad, "with_dx", "with_dbias");
  const bool with_dx = g.needed(0), with_dweight = g.needed(1), with_dbias = g.needed(2);
  Value x = g.in(0), weight = g.in(1);
  if (with_dweight && (with_dx || with_dbias || y)) {
    Value d[3];
    Call(g.builder(), op)
        .copy_attrs(g.info(), g.data())
        .input(dy)
        .input(x)
        .input(weight)
        .input(y)
        .set(0, with_dx)
        .set(1, with_dbias)
        .emit(d, 3);
    g.din(1) = d[1];
    if (with_dx) g.din(0) = d[0];
    if (with_dbias) g.din(2) = d[2];
    return;
  }
  Value d = behind_relu(y, dy);
  if (with_dx) g.din(0) = conv_grad_input<axes>(g, d, weight, x);
  if (with_dweight) g.din(1) = conv_grad_weight<axes>(g, d, x, weight);
  if (with_dbias) g.din(2) = sum(d, axes_but_channels(axes));
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
         "rounded down." +
         (axes == 2
              ? " Filters of 3x3 with stride 1 may go Winograd's way, gradients too: rounding differs from that of "
                "a sum of products, and an infinity or NaN may spread to results beside those that see it."
              : ""))
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
      .grad([](GradContext& g) { differentiate<axes>(g, g.dout(0), g.out(0)); })
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

bool with_dx(const AttrReader& attrs) { return attrs.get<bool>("with_dx"); }
bool with_dbias(const AttrReader& attrs) { return attrs.get<bool>("with_dbias"); }

// The gradient of conv_grad: dx and dweight are each linear in dy and in the other operand, dbias in dy.
template <uint32_t axes>
void second_order(GradContext& g) {
  Value x = g.in(1), weight = g.in(2), y = g.in(3), ddx = g.dout(0), ddweight = g.dout(1), ddbias = g.dout(2);
  if (!with_dx(g)) ddx = {};
  if (!with_dbias(g)) ddbias = {};
  if (g.needed(0) && (ddx || ddweight || ddbias)) {
    Value d;
    auto add = [&](Value more) { d = d ? d + more : more; };
    if (ddx) add(conv_forward<axes>(g, ddx, weight));
    if (ddweight) add(conv_forward<axes>(g, x, ddweight));
    if (ddbias) {
      pg_ints shape = make_ints({1, ddbias.dim(0)});
      while (shape.count < axes + 2) shape.value[shape.count++] = 1;
      add(expand_like(reshape(ddbias, shape), g.in(0)));
    }
    g.din(0) = behind_relu(y, d);
  }
  const bool with_x = g.needed(1) && ddweight, with_weight = g.needed(2) && ddx;
  if (!with_x && !with_weight) return;
  Value dy = behind_relu(y, g.in(0));
  if (with_x) g.din(1) = conv_grad_input<axes>(g, dy, ddweight, x);
  if (with_weight) g.din(2) = conv_grad_weight<axes>(g, dy, ddx, weight);
}

template <uint32_t axes>
void declare_grad() {
  using Text = ConvText<axes>;
  OpBuilder& op = conv_attrs(declare_op(Text::grad).category("neural"), axes);
  op.attr<bool>("with_dx", true, "whether dx is asked for");
  op.attr<bool>("with_dbias", true, "whether dbias is asked for");
  op.doc(std::string("Gradients of ") + Text::forward +
         " at once, which need dy each. With y they are those of relu of it, whose result y is: dy counts where y > 0.")
      .input("dy", kFloating, Text::y)
      .input("x", kFloating, Text::x)
      .input("weight", kFloating, Text::weight)
      .input("y", kFloating, Text::y, PG_INPUT_OPTIONAL)
      .output("dx", "shape of x; [0] where it is not asked for")
      .output("dweight", "shape of weight")
      .output("dbias", "[O]; [0] where it is not asked for")
      .shape([](ShapeContext& c) {
        c.check_same_dtype(1, 0);
        c.check_same_dtype(2, 0);
        check_result(c, 0, conv_shape(c, axes, 1, 2));
        if (c.has(3)) c.check_same_shape(3, 0), c.check_same_dtype(3, 0);
        c.out(0).set(c.dtype(0), with_dx(c) ? c.shape(1) : Shape{0});
        c.out(1).set(c.dtype(0), c.shape(2));
        c.out(2).set(c.dtype(0), with_dbias(c) ? Shape{c.dim(2, 0)} : Shape{0});
      })
      .saves("dy", "x", "weight", "y")
      .grad(second_order<axes>)
      .decompose([](ExpandContext& e) {
        static constinit OpRef fill("fill", "shape", "dtype");
        auto none = [&] {
          return Call(e.builder(), fill).set(0, make_ints({0})).set(1, static_cast<int>(e.in(0).dtype())).emit();
        };
        Value x = e.in(1), weight = e.in(2);
        Value d = behind_relu(e.in(3), e.in(0));
        e.out(0) = with_dx(e) ? conv_grad_input<axes>(e, d, weight, x) : none();
        e.out(1) = conv_grad_weight<axes>(e, d, x, weight);
        e.out(2) = with_dbias(e) ? sum(d, axes_but_channels(axes)) : none();
      });
}

template <uint32_t axes>
void declare() {
  declare_forward<axes>();
  declare_activated<axes>();
  declare_grad_input<axes>();
  declare_grad_weight<axes>();
  declare_grad<axes>();
}

const bool declared = [] {
  declare<1>();
  declare<2>();
  declare<3>();
  return true;
}();

}  // namespace
}  // namespace pg::schema_conv
