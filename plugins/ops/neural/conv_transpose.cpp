// SPDX-License-Identifier: Apache-2.0
// conv_transpose1d, 2d, 3d: the transposes of the convolutions, which are their gradients for x as operators of their
// own (Zeiler and others, "Deconvolutional Networks", 2010).
#include <algorithm>

#include "conv.hpp"

namespace pg::schema_conv_transpose {
namespace {

// How far the windows reach along axis i: (size - 1) stride + dilation (k - 1) + 1 - padding.
Dim reach(const ShapeContext& c, uint32_t i, int64_t stride, int64_t padding, int64_t dilation) {
  return (c.dim(0, i + 2) - Dim(1)) * Dim(stride) + (c.dim(1, i + 2) - Dim(1)) * Dim(dilation) + Dim(1) - Dim(padding);
}

Shape transposed_shape(const ShapeContext& c, uint32_t axes) {
  c.check_rank(0, axes + 2, axes + 2);
  c.check_rank(1, axes + 2, axes + 2);
  c.check_same_dtype(1, 0);
  int64_t groups = c.get<int>("groups");
  c.need(groups >= 1, "groups is %lld; expected at least 1", static_cast<long long>(groups));
  c.need(c.dim(0, 1).may_equal(c.dim(1, 0)), "%s: axis 2 is %lld channels; expected %lld, axis 1 of %s",
         c.text(0).c_str(), static_cast<long long>(c.dim(0, 1).value), static_cast<long long>(c.dim(1, 0).value),
         c.text(1).c_str());
  c.need(c.dim(1, 0).symbolic() || c.dim(1, 0).value % groups == 0,
         "%s: the %lld input channels do not split into %lld groups", c.text(1).c_str(),
         static_cast<long long>(c.dim(1, 0).value), static_cast<long long>(groups));
  pg_ints stride = check_list(c, "stride", axes, 1), dilation = check_list(c, "dilation", axes, 1);
  pg_ints more = check_list(c, "output_padding", axes, 0);
  Padding padding = check_padding(c, "padding", axes);
  Shape shape{c.dim(0, 0), c.dim(1, 1) * Dim(groups)};
  for (uint32_t i = 0; i < axes; i++) {
    c.need(more.value[i] < std::max(stride.value[i], dilation.value[i]),
           "output_padding is %lld; expected less than the stride %lld or the dilation %lld",
           static_cast<long long>(more.value[i]), static_cast<long long>(stride.value[i]),
           static_cast<long long>(dilation.value[i]));
    Dim size = reach(c, i, stride.value[i], padding.before[i] + padding.after[i], dilation.value[i]);
    size = size + Dim(more.value[i]);
    c.need(size.symbolic() || c.dim(0, i + 2).symbolic() || size.value >= 1,
           "%s: nothing is left of axis %u, %lld elements after padding %lld before and %lld behind is taken off",
           c.text(0).c_str(), i + 3, static_cast<long long>(size.value), static_cast<long long>(padding.before[i]),
           static_cast<long long>(padding.after[i]));
    shape.push(size);
  }
  return shape;
}

// As the convolution that it is the transpose of sees it. It would find room for more windows where output_padding is
// as large as the stride (it may be, up to the dilation): there the padding behind is as much smaller, and elements
// that no window reaches are cut off.
struct Fit {
  bool exact = false;  // needed: else the convolution's own rounding down does it
  pg_ints padding{}, starts{}, stops{}, cut{};
  bool cuts = false;

  Fit(const AttrReader& a, uint32_t axes) {
    auto at = [](const pg_ints& list, uint32_t i) { return list.value[list.count == 1 ? 0 : i]; };
    pg_ints more = a.get<Ints>("output_padding"), stride = a.get<Ints>("stride"), given = a.get<Ints>("padding");
    bool pairs = given.count == 2 * axes;
    starts = stops = repeated(axes + 2, 0);
    stops.value[0] = stops.value[1] = INT64_MAX;
    padding.count = 2 * axes, cut.count = axes;
    for (uint32_t i = 0; i < axes; i++) {
      exact = exact || at(more, i) >= at(stride, i);
      int64_t behind = (pairs ? given.value[2 * i + 1] : at(given, i)) - at(more, i);
      padding.value[2 * i] = pairs ? given.value[2 * i] : at(given, i);
      padding.value[2 * i + 1] = std::max<int64_t>(behind, 0);
      cut.value[i] = std::max<int64_t>(-behind, 0);
      stops.value[i + 2] = behind < 0 ? behind : INT64_MAX;
      cuts = cuts || behind < 0;
    }
    if (!exact) padding = given, cut = repeated(axes, 0), cuts = false;
  }
  Value reached(Value y) const {
    if (!cuts) return y;
    static constinit OpRef op("slice", "starts", "stops");
    return Call(y.builder, op).input(y).set(0, starts).set(1, stops).emit();
  }
  // A convolution or gradient of one with this padding.
  Value call(const ValueContext& c, const OpRef& op, Value first, Value second, Value third) const {
    return Call(c.builder(), op)
        .input(first)
        .input(second)
        .input(third)
        .set(0, c.get<Ints>("stride"))
        .set(1, padding)
        .set(2, c.get<Ints>("dilation"))
        .set(3, c.get<int>("groups"))
        .emit();
  }
};

// A value with this shape and dtype for an input of which only those count: one element shown everywhere.
Value described(Value like, const pg_ints& shape) {
  static constinit OpRef slice("slice", "starts", "drop"), expand("expand", "shape");
  Value one =
      Call(like.builder, slice).input(like).set(0, repeated(like.rank(), 0)).set(1, repeated(like.rank(), 1)).emit();
  return Call(like.builder, expand).input(one).set(0, shape).emit();
}

// The gradient of the convolution's x, and the bias: for devices without a kernel of their own.
template <uint32_t axes>
Value compose(const ExpandContext& e) {
  Value x = e.in(0), weight = e.in(1);
  pg_ints stride = e.get<Ints>("stride"), dilation = e.get<Ints>("dilation"), padding = e.get<Ints>("padding");
  pg_ints more = e.get<Ints>("output_padding");
  auto at = [](const pg_ints& list, uint32_t i) { return list.value[list.count == 1 ? 0 : i]; };
  Fit fit(e, axes);
  pg_ints full = make_ints({x.dim(0), dim_mul(weight.dim(1), e.get<int>("groups"))}), small = full;
  for (uint32_t i = 0; i < axes; i++) {
    bool pairs = padding.count == 2 * axes;
    int64_t taken = pairs ? padding.value[2 * i] + padding.value[2 * i + 1] : 2 * at(padding, i);
    Dim size = (Dim(x.dim(i + 2)) - Dim(1)) * Dim(at(stride, i)) +
               (Dim(weight.dim(i + 2)) - Dim(1)) * Dim(at(dilation, i)) + Dim(1 - taken + at(more, i));
    full.value[full.count++] = size.value;
    small.value[small.count++] = (size - Dim(fit.cut.value[i])).value;
  }
  static constinit OpRef grad_input(ConvText<axes>::grad_input, "stride", "padding", "dilation", "groups");
  Value y = fit.call(e, grad_input, x, weight, described(weight, small));
  if (fit.cuts) {
    static constinit OpRef op("slice_grad", "starts", "stops");
    y = Call(e.builder(), op).input(y).input(described(weight, full)).set(0, fit.starts).set(1, fit.stops).emit();
  }
  if (!e.has(2)) return y;
  pg_ints shape = repeated(axes + 1, 1);
  shape.value[0] = e.in(2).dim(0);
  return y + reshape(e.in(2), shape);
}

template <uint32_t axes>
void declare() {
  using Text = ConvText<axes>;
  conv_attrs(declare_op(Text::transpose).category("neural"), axes)
      .template attr<Ints>("output_padding", repeated(axes, 0), "elements added behind each axis of the result")
      .pair()
      .doc(std::string("Transpose of ") + Text::forward +
           ": each element of x times a filter, added up where filters overlap; also called deconvolution. Along each "
           "axis the result has (size - 1) stride - padding + dilation (k - 1) + output_padding + 1 elements, where "
           "padding counts both sides.")
      .input("x", kFloating, Text::x)
      .input("weight", kFloating, Text::turned)
      .input("bias", kFloating, "[O]", PG_INPUT_OPTIONAL)
      .output("y", Text::y)
      .numeric(PG_NUMERIC_LOWER)
      .shape([](ShapeContext& c) {
        Shape shape = transposed_shape(c, axes);
        check_bias(c, 2, shape[1]);
        c.out(0).set(c.dtype(0), shape);
      })
      .saves("x", "weight")
      .grad([](GradContext& g) {
        Value x = g.in(0), weight = g.in(1), dy = g.dout(0);
        Fit fit(g, axes);
        Value part = g.needed(0) || g.needed(1) ? fit.reached(dy) : Value{};
        static constinit OpRef forward(Text::forward, "stride", "padding", "dilation", "groups");
        static constinit OpRef grad_weight(Text::grad_weight, "stride", "padding", "dilation", "groups");
        if (g.needed(0)) g.din(0) = fit.call(g, forward, part, weight, Value{});
        if (g.needed(1)) g.din(1) = fit.call(g, grad_weight, x, part, weight);
        if (g.needed(2)) g.din(2) = sum(dy, axes_but_channels(axes));
      })
      .decompose([](ExpandContext& e) { e.out(0) = compose<axes>(e); });
}

const bool declared = [] {
  declare<1>();
  declare<2>();
  declare<3>();
  return true;
}();

}  // namespace
}  // namespace pg::schema_conv_transpose
