// SPDX-License-Identifier: Apache-2.0
// masked_select and masked_select_grad.
#include "../rules.hpp"

namespace pg::schema_masked_select {
namespace {

const bool declared = [] {
  declare_op("masked_select")
      .category("index")
      .doc("The elements of x where mask is true, in row-major order.")
      .input("x", kStoredReal, "[...]")
      .input("mask", kBool, "a shape that broadcasts to that of x")
      .output("y", "[n]", PG_OUTPUT_DYNAMIC)
      .shape([](ShapeContext& c) {
        check_broadcasts_to(c, 1, 0);
        c.out(0).set(c.dtype(0), Shape{c.shape(0).count()});
      })
      .saves("mask")
      .grad([](GradContext& g) { g.din(0) = apply<"masked_select_grad">(g.dout(0), g.in(1), g.in(0)); });

  declare_op("masked_select_grad")
      .category("index")
      .doc("Zeros in the shape of x, with the elements of dy in row-major order where mask is true.")
      .input("dy", kRealOrBool, "[n]")
      .input("mask", kBool, "a shape that broadcasts to that of x")
      .input("x", kRealOrBool, "[...]", PG_INPUT_META)
      .output("dx", "shape of x")
      .shape([](ShapeContext& c) {
        check_broadcasts_to(c, 1, 2);
        c.check_rank(0, 1, 1);
        c.out(0).set(c.dtype(0), c.shape(2));
      })
      .saves("mask")
      .grad([](GradContext& g) { g.din(0) = apply<"masked_select">(g.dout(0), g.in(1)); });
  return true;
}();

}  // namespace
}  // namespace pg::schema_masked_select
