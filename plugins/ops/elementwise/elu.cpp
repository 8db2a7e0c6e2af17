// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg {
namespace {

PG_OP("elu")
    .category("elementwise")
    .doc("x where x > 0, else alpha * (exp(x) - 1) (Clevert, Unterthiner, Hochreiter 2015).")
    .input("x", kFloating, "any shape")
    .attr<double>("alpha", 1, "the limit for very negative x is -alpha")
    .runtime()
    .output("y", "shape of x")
    .traits(PG_OP_ELEMENTWISE | PG_OP_IN_PLACE)
    .shape(like_input)
    .saves("x")
    .grad([](GradContext& g) {
      // exp of positive x may overflow where it is not used: limit it, or 0 * inf would reach second derivatives.
      Value x = g.in(0), d = g.dout(0);
      Value slope = exp(minimum(x, 0.0)) * g.get<double>("alpha");
      g.din(0) = where(gt(x, 0.0), d, d * slope);
    });

}  // namespace
}  // namespace pg
