// SPDX-License-Identifier: Apache-2.0
// layer_norm and layer_norm_grad.
#include "trailing.hpp"

namespace pg::schema_layer_norm {
namespace {

void differentiate(GradContext& g) {
  static constinit OpRef op("layer_norm_grad", "dims", "eps");
  if (!g.dout(0)) return;
  Value d[3];
  Call(g.builder(), op)
      .input(g.dout(0))
      .input(g.in(0))
      .input(g.in(1))
      .input(g.out(1))
      .input(g.out(2))
      .set(0, g.get<int>("dims"))
      .set(1, g.get<double>("eps"))
      .emit(d, 3);
  if (g.needed(0)) g.din(0) = d[0];
  if (g.needed(1)) g.din(1) = d[1];
  if (g.needed(2)) g.din(2) = cast(d[2], g.in(2).dtype());
}

// mean and invstd are computed anew: they are functions of x, which what is recorded here must not take for constants.
void decompose_grad(ExpandContext& e) {
  Value dy = widen(e.in(0)), x = widen(e.in(1)), weight = widen(e.in(2));
  Normalised n = normalise(x, trailing(e, x.rank()), e.get<double>("eps"));
  pg_ints rows = leading(e, x.rank());
  uint32_t dtype = e.has(2) ? e.in(2).dtype() : e.in(3).dtype();
  e.out(0) = cast(normalised_dx(n, dy, weight), e.in(1).dtype());
  e.out(1) = cast(sum_rows(dy * n.xh, rows), dtype);
  e.out(2) = cast(rows.count == 0 ? clone(dy) : sum(dy, rows), dtype);
}

void second_order(GradContext& g) {
  Value dy = g.in(0), x = g.in(1), weight = g.in(2);
  Normalised n = normalise(x, trailing(g, x.rank()), g.get<double>("eps"));
  SecondOrder second = normalised_second(n, dy, weight, g.dout(0), g.dout(1), g.dout(2));
  if (g.needed(0) && second.ddy) g.din(0) = cast(second.ddy, dy.dtype());
  if (g.needed(1) && second.dx) g.din(1) = cast(second.dx, x.dtype());
  if (g.needed(2) && second.dweight) g.din(2) = cast(sum_rows(second.dweight, leading(g, x.rank())), weight.dtype());
}

PG_OP("layer_norm")
    .category("neural")
    .doc(
        "The last `dims` axes shifted and scaled to mean 0 and variance 1 (biased), then by weight and bias (Ba, "
        "Kiros, "
        "Hinton 2016).")
    .input("x", kFloating, "[..., normalised axes]")
    .input("weight", kFloating, "[normalised axes]", PG_INPUT_OPTIONAL)
    .input("bias", kFloating, "[normalised axes]", PG_INPUT_OPTIONAL)
    .attr<int>("dims", 1, "how many trailing axes to normalise together")
    .attr<double>("eps", 1e-5, "added to the variance")
    .runtime()
    .output("y", "shape of x")
    .hidden("mean", "[...]: x without the normalised axes; float32, float64 for float64")
    .hidden("invstd", "[...]: 1 / sqrt(variance + eps)")
    .shape([](ShapeContext& c) {
      auto [rows, inner] = split(c, 0);
      check_trailing(c, 1, 0, inner);
      check_trailing(c, 2, 0, inner);
      c.out(0) = c.in(0);
      c.out(1).set(statistics_dtype(c.dtype(0)), rows);
      c.out(2).set(statistics_dtype(c.dtype(0)), rows);
    })
    .saves("x", "weight", "mean", "invstd")
    .grad(differentiate)
    .decompose([](ExpandContext& e) {
      Value x = widen(e.in(0));
      Normalised n = normalise(x, trailing(e, x.rank()), e.get<double>("eps"));
      Value y = times(n.xh, widen(e.in(1)));
      e.out(0) = cast(e.has(2) ? y + widen(e.in(2)) : y, e.in(0).dtype());
      if (e.output_count() == 1) return;
      e.out(1) = mean(x, n.axes, false);
      e.out(2) = squeeze(n.s, n.axes);
    });

PG_OP("layer_norm_grad")
    .category("neural")
    .doc("Gradients of layer_norm.")
    .input("dy", kFloating, "[..., normalised axes]")
    .input("x", kFloating, "[..., normalised axes]")
    .input("weight", kFloating, "[normalised axes]", PG_INPUT_OPTIONAL)
    .input("mean", kFloating, "[...]")
    .input("invstd", kFloating, "[...]")
    .attr<int>("dims", 1, "how many trailing axes are normalised")
    .attr<double>("eps", 1e-5, "added to the variance")
    .runtime()
    .output("dx", "shape of x")
    .output("dweight", "[normalised axes]")
    .output("dbias", "[normalised axes]")
    .shape([](ShapeContext& c) {
      auto [rows, inner] = split(c, 1);
      c.check_same_shape(0, 1);
      check_trailing(c, 2, 1, inner);
      uint32_t dtype = c.has(2) ? c.dtype(2) : c.dtype(3);
      c.out(0) = c.in(1);
      c.out(1).set(dtype, inner);
      c.out(2).set(dtype, inner);
    })
    .saves("dy", "x", "weight", "mean", "invstd")
    .grad(second_order)
    .decompose(decompose_grad);

}  // namespace
}  // namespace pg::schema_layer_norm
