// SPDX-License-Identifier: Apache-2.0
// new_op: a function of each element. To be edited: this one is x * sigmoid(beta x) (swish: Ramachandran, Zoph, Le
// 2017).
#include "../rules.hpp"

namespace pg::schema_new_op {
namespace {

PG_OP("new_op")
    .category("elementwise")
    .doc("x * sigmoid(beta * x).")
    .input("x", kFloating, "any shape")
    .attr<double>("beta", 1, "steepness of the sigmoid")
    .runtime()
    .output("y", "shape of x")
    .traits(PG_OP_ELEMENTWISE | PG_OP_IN_PLACE)
    .shape([](ShapeContext& c) { c.out(0) = c.in(0); })
    // Over the primitives of perigee/kernels/primitives.hpp: kernels and fused code follow from it.
    .expression("Mul(x, Sigmoid(Mul(x, beta)))")
    .saves("x")
    .grad([](GradContext& g) {
      double beta = g.get<double>("beta");
      Value x = g.in(0), s = sigmoid(x * beta);
      g.din(0) = g.dout(0) * s * (x * (1.0 - s) * beta + 1.0);
    })
    // Serves devices without kernels of scalar expressions.
    .decompose([](ExpandContext& e) { e.out(0) = e.in(0) * sigmoid(e.in(0) * e.get<double>("beta")); });

}  // namespace
}  // namespace pg::schema_new_op
