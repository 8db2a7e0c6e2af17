// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_masked_fill {
namespace {

PG_OP("masked_fill")
    .category("elementwise")
    .doc("x with `value` where mask is true.")
    .input("x", kStoredReal, "any shape")
    .input("mask", kBool, "a shape that broadcasts to that of x")
    .attr<double>("value", 0, "what to write, converted to the dtype of x")
    .runtime()
    .output("y", "shape of x")
    .traits(PG_OP_ELEMENTWISE | PG_OP_IN_PLACE)
    .expression("Select(mask, value, x)")
    .shape([](ShapeContext& c) {
      check_broadcasts_to(c, 1, 0);
      c.out(0) = c.in(0);
    })
    .saves("mask")
    .grad([](GradContext& g) { g.din(0) = where(g.in(1), 0.0, g.dout(0)); });

}  // namespace
}  // namespace pg::schema_masked_fill
