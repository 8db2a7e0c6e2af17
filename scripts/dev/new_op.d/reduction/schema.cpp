// SPDX-License-Identifier: Apache-2.0
// new_op: a number for each line along an axis. To be edited: this one is the root of the mean square.
#include "../rules.hpp"

namespace pg::schema_new_op {
namespace {

pg_ints axis_of(const AttrReader& a) { return make_ints({a.get<Axis>("axis")}); }

PG_OP("new_op")
    .category("reduction")
    .doc("sqrt(mean(x^2)) along `axis`.")
    .input("x", kFloating, "[...]")
    .attr<Axis>("axis", -1, "axis to reduce")
    .attr<bool>("keepdim", false, "keep the axis, with size 1")
    .output("y", "x without the axis")
    .numeric(PG_NUMERIC_FLOAT32)
    .shape([](ShapeContext& c) {
      uint32_t axis = c.check_axis("axis", 0);
      Shape shape = c.shape(0), result;
      for (uint32_t i = 0; i < shape.rank; i++) {
        if (i != axis) result.push(shape[i]);
        if (i == axis && c.get<bool>("keepdim")) result.push(1);
      }
      c.out(0).set(c.dtype(0), result);
    })
    .saves("x", "y")
    .grad([](GradContext& g) {
      Value x = g.in(0), y = g.out(0), dy = g.dout(0);
      if (!g.get<bool>("keepdim") && x.rank() > 0) {
        y = unsqueeze(y, g.get<Axis>("axis"));
        dy = unsqueeze(dy, g.get<Axis>("axis"));
      }
      // The number of elements is counted, as it may be a symbol. At 0 the slope is 0.
      Value count = sum(ones_like(x), axis_of(g), true);
      g.din(0) = x * (dy / (where(eq(y, 0.0), 1.0, y) * count));
    })
    // Serves every device that has no kernel of its own.
    .decompose([](ExpandContext& e) { e.out(0) = sqrt(mean(square(e.in(0)), axis_of(e), e.get<bool>("keepdim"))); });

}  // namespace
}  // namespace pg::schema_new_op
