// SPDX-License-Identifier: Apache-2.0
// norm: the p-norm of vectors along a set of axes.
#include <cmath>

#include "reduction.hpp"

namespace pg::schema_norm {
namespace {

double order_of(const AttrReader& a) { return a.get<double>("p"); }

void infer(ShapeContext& c) {
  AxisSet axes = c.check_axes("axes", 0);
  Shape shape = c.shape(0);
  double p = order_of(c);
  c.need(p == p, "p is not a number");
  for (uint32_t i = 0; (p < 0 || std::isinf(p)) && i < shape.rank; i++)
    c.need(!axes.has(i) || !shape[i].is(0), "%s: axis %u is empty, and the norm of order %g of nothing has no value",
           c.text(0).c_str(), i + 1, p);
  c.out(0).set(c.dtype(0), reduced_shape(shape, axes, c.get<bool>("keepdim")));
}

// |x| to the power q, and `at_zero` for x = 0 whatever q is, with slopes.
Value magnitude_power(Value x, double q, double at_zero) {
  Value none = eq(x, 0.0);
  return where(none, at_zero, pow(where(none, 1.0, abs(x)), q));
}
// y to the power q, and 0 for y = 0, with slopes.
Value power_of_norm(Value y, double q) {
  Value none = eq(y, 0.0);
  return where(none, 0.0, pow(where(none, 1.0, y), q));
}

Value expand(ExpandContext& e) {
  Value x = e.in(0);
  pg_ints axes = axis_list(axes_of(e, x.rank()));
  bool keepdim = e.get<bool>("keepdim");
  double p = order_of(e);
  if (p == 0) return cast(sum(ne(x, 0.0), axes, keepdim), x.dtype());
  if (p == 1) return sum(abs(x), axes, keepdim);
  if (p == 2) return sqrt(sum(square(x), axes, keepdim));
  if (std::isinf(p)) return p > 0 ? amax(abs(x), axes, keepdim) : reduce<"amin">(abs(x), axes, keepdim);
  // A norm of 0: all elements are (p > 0), or one is (p < 0).
  double of_zero = p > 0 ? 0.0 : INFINITY;
  Value total = sum(magnitude_power(x, p, of_zero), axes, keepdim), none = eq(total, of_zero);
  return where(none, 0.0, pow(where(none, 1.0, total), 1 / p));
}

// At 0 the slope is 0. Elements that tie for the largest (least) magnitude share it.
Value slope(GradContext& g, Value x, Value y, Value d, const AxisSet& axes) {
  double p = order_of(g);
  if (p == 0) return zeros_like(x);
  if (p == 1) return d * sign(x);
  if (p == 2) return x * (d / where(eq(y, 0.0), 1.0, y));
  if (std::isinf(p)) {
    Value hit = eq(abs(x), y), ties = sum(cast(hit, x.dtype()), axis_list(axes), true);
    return where(hit, sign(x) * (d / ties), 0.0);
  }
  return magnitude_power(x, p - 1, 0) * sign(x) * (d * power_of_norm(y, 1 - p));
}

[[maybe_unused]] OpBuilder& norm =
    declare_op("norm")
        .category("reduction")
        .doc(
            "sum(|x|^p)^(1/p); for p = 0 the number of elements that are not 0, for p = inf (-inf) the largest (least) "
            "magnitude.")
        .input("x", kFloating, "[...]")
        .attr<double>("p", 2, "order of the norm")
        .attr<Axes>("axes", {}, "axes to reduce; none means all")
        .attr<bool>("keepdim", false, "keep the reduced axes, with size 1")
        .output("y", "x without the reduced axes")
        .traits(PG_OP_REDUCTION)
        .numeric(PG_NUMERIC_FLOAT32)
        .shape(infer)
        .saves("x", "y")
        .grad([](GradContext& g) {
          Value x = g.in(0);
          AxisSet axes = axes_of(g, x.rank());
          bool keepdim = g.get<bool>("keepdim");
          Value y = restore_axes(g.out(0), axes, keepdim, x.rank());
          g.din(0) = slope(g, x, y, restore_axes(g.dout(0), axes, keepdim, x.rank()), axes);
        })
        .decompose([](ExpandContext& e) { e.out(0) = expand(e); });

}  // namespace
}  // namespace pg::schema_norm
