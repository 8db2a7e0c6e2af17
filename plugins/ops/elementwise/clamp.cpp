// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "../rules.hpp"

namespace pg::schema_clamp {
namespace {

PG_OP("clamp")
    .category("elementwise")
    .doc(
        "x limited to [min, max]; NaN stays. Where min > max the result is max. The gradient is that of x inside the "
        "limits, bounds included, and 0 outside.")
    .input("x", kReal, "any shape")
    .attr<double>("min", -INFINITY, "lower bound")
    .runtime()
    .attr<double>("max", INFINITY, "upper bound")
    .runtime()
    .output("y", "shape of x")
    .traits(PG_OP_ELEMENTWISE | PG_OP_IN_PLACE)
    .expression("Clamp(x; min, max)")
    .shape(like_input)
    .saves("x")
    .grad([](GradContext& g) {
      Value x = g.in(0);
      Value inside = logical_and(ge(x, g.get<double>("min")), le(x, g.get<double>("max")));
      g.din(0) = where(inside, g.dout(0), 0.0);
    });

}  // namespace
}  // namespace pg::schema_clamp
