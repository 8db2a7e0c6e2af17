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
    .output("y", "shape of x")
    .shape([](ShapeContext& c) { c.out(0) = c.in(0); })
    .saves("x")
    .grad([](GradContext& g) {
      double beta = g.get<double>("beta");
      Value x = g.in(0), s = sigmoid(x * beta);
      g.din(0) = g.dout(0) * s * (x * (1.0 - s) * beta + 1.0);
    })
    // Serves every device that has no kernel of its own.
    .decompose([](ExpandContext& e) { e.out(0) = e.in(0) * sigmoid(e.in(0) * e.get<double>("beta")); });

}  // namespace
}  // namespace pg::schema_new_op
