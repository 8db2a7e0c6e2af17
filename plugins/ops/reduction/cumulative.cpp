// SPDX-License-Identifier: Apache-2.0
// cumsum and cumprod.
#include "../rules.hpp"

namespace pg::schema_cumulative {
namespace {

void infer(ShapeContext& c) {
  c.check_axis("axis", 0);
  bool lift = (dtype_class(c.dtype(0)) & (PG_M_INT | PG_M_BOOL)) != 0;
  c.out(0).set(lift ? PG_I64 : c.dtype(0), c.shape(0));
}

// Sums from each element to the end.
Value suffix_sum(Value v, int64_t axis) { return v - cumsum(v, axis) + sum(v, make_ints({axis}), true); }

// Before the first zero: sum over j >= k of d_j y_j / x_k. At it: the same sum with that zero left out of the products.
// Behind it every product holds the zero, so the slope is 0; but its derivative by that zero is the slope without it,
// which `deeper` levels follow (one reaches second derivatives).
Value cumprod_slope(Value x, Value y, Value d, int64_t axis, int deeper) {
  Value zero = eq(x, 0.0), seen = cumsum(zero, axis);
  Value first = logical_and(zero, eq(seen, 1.0)), rest = where(first, 1.0, x);
  Value product = along<"cumprod">(rest, axis);
  Value before = suffix_sum(d * y, axis) / where(zero, 1.0, x), at = suffix_sum(d * product, axis);
  Value behind = Value();
  if (deeper > 0) {
    Value hollow = sum(where(first, x, 0.0), make_ints({axis}), true);  // 0, with the derivative by the zero
    behind = hollow * cumprod_slope(rest, product, d, axis, deeper - 1);
  }
  Value others = behind ? where(gt(seen, 0.0), behind, before) : where(gt(seen, 0.0), 0.0, before);
  return where(first, at, others);
}

OpBuilder& declare(const char* name, const char* doc) {
  return declare_op(name)
      .category("reduction")
      .doc(doc)
      .input("x", kRealOrBool, "[...]")
      .attr<Axis>("axis", 0, "axis to run along")
      .required()
      .output("y", "shape of x")
      .numeric(PG_NUMERIC_FLOAT32)
      .shape(infer);
}

const bool declared = [] {
  declare("cumsum", "Sums of the elements up to each; of integers and booleans in int64.").grad([](GradContext& g) {
    Value d = g.dout(0);
    g.din(0) = cast(suffix_sum(widen(d), g.get<Axis>("axis")), d.dtype());
  });
  declare("cumprod", "Products of the elements up to each; of integers and booleans in int64.")
      .saves("x", "y")
      .grad([](GradContext& g) {
        int64_t axis = g.get<Axis>("axis");
        Value x = g.in(0), wide = widen(x);
        bool is_narrow = wide.dtype() != x.dtype();  // then y is rounded, and small products are lost
        Value y = is_narrow ? along<"cumprod">(wide, axis) : g.out(0);
        g.din(0) = cast(cumprod_slope(wide, y, widen(g.dout(0)), axis, 1), x.dtype());
      });
  return true;
}();

}  // namespace
}  // namespace pg::schema_cumulative
