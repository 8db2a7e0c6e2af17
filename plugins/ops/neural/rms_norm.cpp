// SPDX-License-Identifier: Apache-2.0
// rms_norm and rms_norm_grad.
#include "trailing.hpp"

namespace pg::schema_rms_norm {
namespace {

double eps_of(const AttrReader& attrs, uint32_t dtype) {
  double eps = attrs.get<double>("eps");
  return eps > 0 ? eps : statistics_dtype(dtype) == PG_F64 ? 0x1p-52 : 0x1p-23;
}

Normalised scaled(const ValueContext& c, Value x) {
  pg_ints axes = trailing(c, x.rank());
  Value s = rsqrt(mean(square(x), axes, true) + eps_of(c, x.dtype()));
  return {x * s, s, axes, false, false};
}

void differentiate(GradContext& g) {
  static constinit OpRef op("rms_norm_grad");
  if (!g.dout(0)) return;
  Value d[2];
  Call call(g.builder(), op);
  call.copy_attrs(g.info(), g.data()).input(g.dout(0)).input(g.in(0)).input(g.in(1)).input(g.out(1)).emit(d, 2);
  for (uint32_t i = 0; i < 2; i++)
    if (g.needed(i)) g.din(i) = d[i];
}

void decompose(ExpandContext& e) {
  Value x = widen(e.in(0));
  Normalised n = scaled(e, x);
  e.out(0) = cast(times(n.xh, e.has(1) ? cast(e.in(1), x.dtype()) : Value{}), e.in(0).dtype());
  if (e.output_count() > 1) e.out(1) = squeeze(n.s, n.axes);
}

// invstd is computed anew: it is a function of x, which what is recorded here must not take for a constant.
void decompose_grad(ExpandContext& e) {
  Value invstd = e.in(3), dy = cast(e.in(0), invstd.dtype()), x = cast(e.in(1), invstd.dtype());
  Normalised n = scaled(e, x);
  e.out(0) = cast(normalised_dx(n, dy, e.has(2) ? cast(e.in(2), x.dtype()) : Value{}), e.in(1).dtype());
  uint32_t dtype = e.has(2) ? e.in(2).dtype() : invstd.dtype();
  pg_ints rows = leading(e, x.rank());
  e.out(1) = cast(sum_rows(dy * n.xh, rows), dtype);
}

void second_order(GradContext& g) {
  Value dy = g.in(0), x = g.in(1), weight = g.in(2);
  SecondOrder second = normalised_second(scaled(g, x), dy, weight, g.dout(0), g.dout(1), {});
  if (g.needed(0) && second.ddy) g.din(0) = cast(second.ddy, dy.dtype());
  if (g.needed(1) && second.dx) g.din(1) = cast(second.dx, x.dtype());
  if (g.needed(2) && second.dweight) g.din(2) = cast(sum_rows(second.dweight, leading(g, x.rank())), weight.dtype());
}

PG_OP("rms_norm")
    .category("neural")
    .doc("x over the root mean square of its last `dims` axes, times weight (Zhang and Sennrich 2019).")
    .input("x", kFloating, "[..., normalised axes]")
    .input("weight", kFloating, "[normalised axes]", PG_INPUT_OPTIONAL)
    .attr<int>("dims", 1, "how many trailing axes to normalise together")
    .attr<double>("eps", 0, "added to the mean of squares; 0: the distance of numbers at 1, in float32 or float64")
    .runtime()
    .output("y", "shape of x")
    .hidden("invstd", "[...]: 1 / sqrt(mean(x^2) + eps); float32, float64 for float64")
    .shape([](ShapeContext& c) {
      auto [rows, inner] = split(c, 0);
      check_trailing(c, 1, 0, inner);
      c.out(0) = c.in(0);
      c.out(1).set(statistics_dtype(c.dtype(0)), rows);
    })
    .saves("x", "weight", "invstd")
    .grad(differentiate)
    .decompose(decompose);

PG_OP("rms_norm_grad")
    .category("neural")
    .doc("Gradients of rms_norm.")
    .input("dy", kFloating, "[..., normalised axes]")
    .input("x", kFloating, "[..., normalised axes]")
    .input("weight", kFloating, "[normalised axes]", PG_INPUT_OPTIONAL)
    .input("invstd", kFloating, "[...]")
    .attr<int>("dims", 1, "how many trailing axes are normalised")
    .attr<double>("eps", 0, "added to the mean of squares")
    .runtime()
    .output("dx", "shape of x")
    .output("dweight", "[normalised axes]")
    .shape([](ShapeContext& c) {
      auto [rows, inner] = split(c, 1);
      c.check_same_shape(0, 1);
      check_trailing(c, 2, 1, inner);
      c.out(0) = c.in(1);
      c.out(1).set(c.has(2) ? c.dtype(2) : c.dtype(3), inner);
    })
    .saves("dy", "x", "weight", "invstd")
    .grad(second_order)
    .decompose(decompose_grad);

}  // namespace
}  // namespace pg::schema_rms_norm
