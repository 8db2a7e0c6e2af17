// SPDX-License-Identifier: Apache-2.0
// quantized_linear: linear by a weight of small whole numbers and scales. Devices without a kernel for it make the
// weight and multiply.
#include "quantized.hpp"

namespace pg::schema_quantized_linear {
namespace {

using namespace quantized;

Value weight_of(const ValueContext& c) {
  static constinit OpRef op("dequantize", "format");
  return c.call(op, c.in(1), c.in(2));
}

void infer(ShapeContext& c) {
  c.check_rank(0, 1);
  c.check_same_dtype(2, 0);
  Shape weight = check_weight(c, 1, 2), shape = c.shape(0);
  c.check_dim(0, shape.rank - 1, weight[1], "the number of columns that weight stands for");
  shape.dims[shape.rank - 1] = weight.dims[0];
  if (c.has(3)) {
    c.check_rank(3, 1, 1);
    c.check_same_dtype(3, 0);
    c.check_dim(3, 0, weight[0], "the first axis of weight");
  }
  check_activations(c, 4);
  c.out(0).set(c.dtype(0), shape);
}

void differentiate(GradContext& g) {
  Value d = g.dout(0);
  if (is_relu(g)) {  // computed again: kept, it could not be written to afterwards
    static constinit OpRef op("quantized_linear");
    d = relu_grad(g.call(op, g.in(0), g.in(1), g.in(2), g.in(3), g.in(4), g.in(5)), d);
  }
  if (g.needed(0)) g.din(0) = matmul(d, weight_of(g));
  if (g.needed(2)) {
    Value dweight = matmul(flatten_rows(d), flatten_rows(g.in(0)), true, false);
    g.din(2) = into_scale(dweight, g.in(1), g.in(2), format_of(g));
  }
  if (g.needed(3)) g.din(3) = sum_like(d, g.in(3));
}

void declare() {
  OpBuilder& op = declare_op("quantized_linear")
                      .category("matrix")
                      .doc(
                          "linear(x, dequantize(weight, scale), bias). activations=\"floating\" leaves x as it is; "
                          "\"int8\" and \"uint8\" make whole numbers of x first (as fake_quantize does), so that the "
                          "product is one of whole numbers: by x_scale and x_zero_point where they are given, else by "
                          "each row's largest magnitude (int8) or extremes and 0 (uint8). Gradients pass straight "
                          "through x's rounding. Where a device has a kernel for it, few rows of x read the small "
                          "weight as it lies.")
                      .input("x", kFloating, "[..., in]", PG_INPUT_PROMOTE)
                      .input("weight", kInteger, kWeight)
                      .input("scale", kFloating, kScale, PG_INPUT_PROMOTE)
                      .input("bias", kFloating, "[out]", PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL)
                      .input("x_scale", kFloating, "[1]", PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL)
                      .input("x_zero_point", kFloating, "[1], of uint8", PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL);
  format_attr(op);
  activation_attr(activations_attr(op, "what x is multiplied as"))
      .output("y", "[..., out]")
      .numeric(PG_NUMERIC_LOWER)
      .shape(infer)
      .saves("x", "weight", "scale", "bias", "x_scale", "x_zero_point")
      .grad(differentiate)
      .decompose([](ExpandContext& e) {
        static constinit OpRef linear("linear"), dequantize("dequantize", "format");
        Call call(e.builder(), linear);
        Value bias = e.has(3) ? e.in(3) : Value{};
        if (e.get<Choice>("activations") == kAsIs) {
          Value y = call.input(e.in(0)).input(weight_of(e)).input(bias).emit();
          e.out(0) = is_relu(e) ? relu(y) : y;
          return;
        }
        Value x = fake_activations(e, widen(e.in(0)), e.has(4) ? widen(e.in(4)) : Value{},
                                   e.has(5) ? widen(e.in(5)) : Value{});
        Value weight = e.call(dequantize, e.in(1), widen(e.in(2)));
        Value y = cast(call.input(x).input(weight).input(widen(bias)).emit(), e.in(0).dtype());
        e.out(0) = is_relu(e) ? relu(y) : y;
      });
}

[[maybe_unused]] const bool declared = (declare(), true);

}  // namespace
}  // namespace pg::schema_quantized_linear
