// SPDX-License-Identifier: Apache-2.0
// linear, and linear_activation, which applies an activation in the same pass.
#include "matrix.hpp"

namespace pg::schema_linear {
namespace {

void infer(ShapeContext& c) {
  c.check_rank(0, 1);
  c.check_rank(1, 2, 2);
  c.check_same_dtype(1, 0);
  Shape shape = c.shape(0);
  c.check_dim(0, shape.rank - 1, c.dim(1, 1), "the second axis of weight");
  shape.dims[shape.rank - 1] = c.dim(1, 0).value;
  if (c.has(2)) {
    c.check_rank(2, 1, 1);
    c.check_same_dtype(2, 0);
    c.check_dim(2, 0, c.dim(1, 0), "the first axis of weight");
  }
  c.out(0).set(c.dtype(0), shape);
}

// d: the cotangent of x weight^T + bias.
void differentiate(GradContext& g, Value d) {
  if (g.needed(0)) g.din(0) = matmul(d, g.in(1));
  if (g.needed(1)) g.din(1) = matmul(flatten_rows(d), flatten_rows(g.in(0)), true, false);
  if (g.needed(2)) g.din(2) = sum_like(d, g.in(2));
}

Value affine(pg_builder* builder, Value x, Value weight, Value bias) {
  static constinit OpRef op("linear");
  return Call(builder, op).input(x).input(weight).input(bias).emit();
}

enum Activation : int32_t { kRelu, kGeluTanh };

PG_OP("linear")
    .category("matrix")
    .doc("x times the transposed weight, plus bias: the affine map of a fully connected layer.")
    .input("x", kReal, "[..., in]", PG_INPUT_PROMOTE)
    .input("weight", kReal, "[out, in]", PG_INPUT_PROMOTE)
    .input("bias", kReal, "[out]", PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL)
    .output("y", "[..., out]")
    .numeric(PG_NUMERIC_LOWER)
    .shape(infer)
    .saves("x", "weight")
    .grad([](GradContext& g) { differentiate(g, g.dout(0)); })
    .decompose([](ExpandContext& e) {
      Value y = matmul(e.in(0), e.in(1), false, true);
      e.out(0) = e.has(2) ? y + e.in(2) : y;
    });

// An operator of its own, since it keeps the result for backward (of relu), which linear does not.
PG_OP("linear_activation")
    .category("matrix")
    .doc(
        "An activation of linear(x, weight, bias), applied while the product is written. relu's gradient comes from "
        "the "
        "result; for gelu_tanh's the product is computed again, so gelu(linear(...), {approximate=\"tanh\"}) is the "
        "faster one to train and this one needs less memory.")
    .input("x", kFloating, "[..., in]", PG_INPUT_PROMOTE)
    .input("weight", kFloating, "[out, in]", PG_INPUT_PROMOTE)
    .input("bias", kFloating, "[out]", PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL)
    .output("y", "[..., out]")
    .choice("activation", {"relu", "gelu_tanh"}, kRelu, "max(y, 0), or the tanh form of gelu")
    .numeric(PG_NUMERIC_LOWER)
    .shape(infer)
    .saves("x", "weight", "bias", "y")
    .grad([](GradContext& g) {
      static constinit OpRef gelu_grad("gelu_grad", "approximate");
      Value d = g.dout(0);
      if (g.get<Choice>("activation") == kRelu) {
        d = relu_grad(g.out(0), d);
      } else {
        Value y = affine(g.builder(), g.in(0), g.in(1), g.has(2) ? g.in(2) : Value{});
        d = Call(g.builder(), gelu_grad).input(y).input(d).set(0, 1).emit();
      }
      differentiate(g, d);
    })
    .decompose([](ExpandContext& e) {
      static constinit OpRef gelu("gelu", "approximate");
      Value y = affine(e.builder(), e.in(0), e.in(1), e.has(2) ? e.in(2) : Value{});
      bool is_relu = e.get<Choice>("activation") == kRelu;
      e.out(0) = is_relu ? relu(y) : Call(e.builder(), gelu).input(y).set(0, 1).emit();
    });

}  // namespace
}  // namespace pg::schema_linear
