// SPDX-License-Identifier: Apache-2.0
// new_op: whole lines along an axis to lines. To be edited: this one takes the mean of a line off its elements.
#include "../rules.hpp"

namespace pg::schema_new_op {
namespace {

Value centred(Value x, int64_t axis) { return x - mean(x, make_ints({axis}), true); }

PG_OP("new_op")
    .category("neural")
    .doc("x - mean(x) along `axis`.")
    .input("x", kFloating, "[...]")
    .attr<Axis>("axis", -1, "axis of the lines")
    .output("y", "shape of x")
    .numeric(PG_NUMERIC_FLOAT32)
    .shape([](ShapeContext& c) {
      c.check_axis("axis", 0);
      c.out(0) = c.in(0);
    })
    .grad([](GradContext& g) { g.din(0) = centred(g.dout(0), g.get<Axis>("axis")); })
    // Serves every device that has no kernel of its own.
    .decompose([](ExpandContext& e) { e.out(0) = centred(e.in(0), e.get<Axis>("axis")); });

}  // namespace
}  // namespace pg::schema_new_op
