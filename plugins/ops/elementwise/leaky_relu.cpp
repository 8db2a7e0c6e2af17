// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg {
namespace {

PG_OP("leaky_relu")
    .category("elementwise")
    .doc("x where x > 0, else negative_slope * x.")
    .input("x", kFloating, "any shape")
    .attr<double>("negative_slope", 0.01, "slope for negative x")
    .runtime()
    .output("y", "shape of x")
    .traits(PG_OP_ELEMENTWISE | PG_OP_IN_PLACE)
    .shape(like_input)
    .saves("x")
    .grad([](GradContext& g) {
      Value d = g.dout(0);
      g.din(0) = where(gt(g.in(0), 0.0), d, d * g.get<double>("negative_slope"));
    });

}  // namespace
}  // namespace pg
