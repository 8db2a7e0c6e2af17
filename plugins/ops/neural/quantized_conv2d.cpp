// SPDX-License-Identifier: Apache-2.0
// quantized_conv2d: conv2d by filters of small whole numbers and scales. Devices without a kernel for it make the
// filters and convolve.
#include "../matrix/quantized.hpp"
#include "conv.hpp"

namespace pg::schema_quantized_conv2d {
namespace {

using namespace quantized;

// The filters [out, C / groups, kh, kw].
Value filters(const ValueContext& c, Value scale) {
  static constinit OpRef op("dequantize", "format");
  Value weight = c.call(op, c.in(1), scale);
  const pg_ints kernel = c.get<Ints>("kernel");
  const int64_t high = kernel.value[0], wide = kernel.value[kernel.count - 1];
  return reshape(weight, make_ints({weight.dim(0), (Dim(weight.dim(1)) / Dim(high * wide)).value, high, wide}));
}

void infer(ShapeContext& c) {
  c.check_rank(0, 4, 4);
  c.check_same_dtype(2, 0);
  const Shape weight = check_weight(c, 1, 2);
  const auto groups = c.get<int>("groups");
  c.need(groups >= 1, "groups is %lld; expected at least 1", static_cast<long long>(groups));
  const pg_ints kernel = check_list(c, "kernel", 2, 1);
  const Dim columns = c.dim(0, 1) / Dim(groups) * Dim(kernel.value[0] * kernel.value[1]);
  c.need(c.dim(0, 1).symbolic() || c.dim(0, 1).value % groups == 0,
         "%s: the %lld channels do not split into %lld groups", c.text(0).c_str(),
         static_cast<long long>(c.dim(0, 1).value), static_cast<long long>(groups));
  c.need(weight[1].may_equal(columns),
         "%s stands for rows of %lld numbers; expected %lld, those of a filter of %s over %lld channels",
         c.text(1).c_str(), static_cast<long long>(weight[1].value), static_cast<long long>(columns.value),
         list_text(kernel).c_str(), static_cast<long long>((c.dim(0, 1) / Dim(groups)).value));
  const Dim outputs = weight[0];
  c.need(outputs.symbolic() || outputs.value % groups == 0,
         "%s: the %lld output channels do not split into %lld groups", c.text(1).c_str(),
         static_cast<long long>(outputs.value), static_cast<long long>(groups));
  check_bias(c, 3, outputs);
  check_activations(c, 4);
  const pg_ints stride = check_list(c, "stride", 2, 1), dilation = check_list(c, "dilation", 2, 1);
  const Padding padding = check_padding(c, "padding", 2);
  Shape shape{c.dim(0, 0), outputs};
  for (uint32_t i = 0; i < 2; i++)
    shape.push(window_count(c, 0, i + 2, Dim(kernel.value[i]), stride.value[i], padding.before[i], padding.after[i],
                            dilation.value[i]));
  c.out(0).set(c.dtype(0), shape);
}

void differentiate(GradContext& g) {
  Value d = g.dout(0);
  if (is_relu(g)) {  // computed again: kept, it could not be written to afterwards
    static constinit OpRef op("quantized_conv2d");
    d = relu_grad(g.call(op, g.in(0), g.in(1), g.in(2), g.in(3), g.in(4), g.in(5)), d);
  }
  if (g.needed(0) || g.needed(2)) {
    Value weight = filters(g, g.in(2));
    if (g.needed(0)) g.din(0) = conv_grad_input<2>(g, d, weight, g.in(0));
    if (g.needed(2)) {
      Value all = conv_grad_weight<2>(g, d, g.in(0), weight);
      const Dim columns = Dim(all.dim(1)) * Dim(all.dim(2)) * Dim(all.dim(3));
      Value rows = reshape(all, make_ints({all.dim(0), columns.value}));
      g.din(2) = into_scale(rows, g.in(1), g.in(2), format_of(g));
    }
  }
  if (g.needed(3)) g.din(3) = sum(d, axes_but_channels(2));
}

// A zero point as a kernel takes it: what stands for 0 can only then be what is padded with.
Value zero_point(Value zero) { return zero ? minimum(maximum(apply<"round">(zero), 0.0), 255.0) : zero; }

void expand(ExpandContext& e) {
  static constinit OpRef conv("conv2d", "stride", "padding", "dilation", "groups");
  const bool as_is = e.get<Choice>("activations") == kAsIs;
  Value x = e.in(0), weight = filters(e, as_is ? e.in(2) : widen(e.in(2)));
  Value bias = e.has(3) ? as_is ? e.in(3) : widen(e.in(3)) : Value{};
  if (!as_is) {
    x = fake_activations(e, widen(x), e.has(4) ? widen(e.in(4)) : Value{},
                         zero_point(e.has(5) ? widen(e.in(5)) : Value{}), make_ints({1, 2, 3}));
  }
  Value y = cast(e.call(conv, x, weight, bias), e.in(0).dtype());
  e.out(0) = is_relu(e) ? relu(y) : y;
}

void declare() {
  OpBuilder& op =
      declare_op("quantized_conv2d")
          .category("neural")
          .doc(
              "conv2d(x, dequantize(weight, scale) as filters [out, C / groups, kh, kw], bias). "
              "activations=\"floating\" leaves x as it is; \"int8\" and \"uint8\" make whole numbers of x first (as "
              "fake_quantize does), so that the product is one of whole numbers: by x_scale and x_zero_point where "
              "they are given (which is rounded and kept within 0..255), else by each image's largest magnitude (int8) "
              "or extremes and 0 (uint8). Gradients pass straight through x's rounding.")
          .input("x", kFloating, "[N, C, H, W]", PG_INPUT_PROMOTE)
          .input("weight", kInteger,
                 "a filter a row, in = C / groups * kh * kw: int8 [out, in], of int4 uint8 [out, "
                 "in / 2], of float8 uint8 [out, in]")
          .input("scale", kFloating, kScale, PG_INPUT_PROMOTE)
          .input("bias", kFloating, "[out]", PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL)
          .input("x_scale", kFloating, "[1]", PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL)
          .input("x_zero_point", kFloating, "[1], of uint8", PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL)
          .attr<Ints>("kernel", repeated(2, 0), "size of the filters along each axis, in elements")
          .required()
          .pair();
  format_attr(conv_attrs(op, 2));
  activation_attr(activations_attr(op, "what x is multiplied as"))
      .output("y", "[N, out, H', W']")
      .numeric(PG_NUMERIC_LOWER)
      .shape(infer)
      .saves("x", "weight", "scale", "bias", "x_scale", "x_zero_point")
      .grad(differentiate)
      .decompose(expand);
}

[[maybe_unused]] const bool declared = (declare(), true);

}  // namespace
}  // namespace pg::schema_quantized_conv2d
