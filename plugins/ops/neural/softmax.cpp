// SPDX-License-Identifier: Apache-2.0
// softmax and softmax_grad.
#include "empty_axis.hpp"

namespace pg::schema_softmax {
namespace {

Value along(Value v, const AttrReader& attrs) { return sum(v, make_ints({attrs.get<Axis>("axis")}), true); }

Value backward(Value y, Value dy, const AttrReader& attrs) {
  static constinit OpRef op("softmax_grad", "axis");
  return Call(y.builder, op).input(y).input(dy).set(0, attrs.get<Axis>("axis")).emit();
}

// dx = y (dy - s) with s = sum(y dy): linear in dy, by the same symmetric matrix that softmax itself has for a slope.
void second_order(GradContext& g) {
  Value y = g.in(0), dy = g.in(1), d = g.dout(0);
  if (g.needed(0)) g.din(0) = d * (dy - along(y * dy, g)) - dy * along(y * d, g);
  if (g.needed(1)) g.din(1) = backward(y, d, g);
}

PG_OP("softmax")
    .category("neural")
    .doc("Exponentials scaled to sum to 1 along `axis`: exp(x) / sum(exp(x)), without overflow.")
    .input("x", kFloating, "[...]")
    .attr<Axis>("axis", -1, "axis to normalise")
    .output("y", "shape of x")
    .numeric(PG_NUMERIC_FLOAT32)
    .shape([](ShapeContext& c) {
      c.check_axis("axis", 0);
      c.out(0) = c.in(0);
    })
    .saves("y")
    .grad([](GradContext& g) { g.din(0) = backward(g.out(0), g.dout(0), g); })
    .decompose([](ExpandContext& e) {
      pg_ints axis = make_ints({e.get<Axis>("axis")});
      if (is_empty_axis(e.in(0), axis)) return void(e.out(0) = exp(e.in(0)));  // of nothing there is no largest
      Value power = exp(e.in(0) - amax(e.in(0), axis, true));
      e.out(0) = power / sum(power, axis, true);
    });

PG_OP("softmax_grad")
    .category("neural")
    .doc("Gradient of softmax, of its result y.")
    .input("y", kFloating, "[...]")
    .input("dy", kFloating, "shape of y")
    .attr<Axis>("axis", -1, "axis that was normalised")
    .output("dx", "shape of y")
    .numeric(PG_NUMERIC_FLOAT32)
    .shape([](ShapeContext& c) {
      c.check_axis("axis", 0);
      c.check_same_shape(0, 1);
      c.check_same_dtype(0, 1);
      c.out(0) = c.in(0);
    })
    .saves("y", "dy")
    .grad(second_order)
    .decompose([](ExpandContext& e) {
      Value y = e.in(0), dy = e.in(1);
      e.out(0) = y * (dy - along(y * dy, e));
    });

}  // namespace
}  // namespace pg::schema_softmax
