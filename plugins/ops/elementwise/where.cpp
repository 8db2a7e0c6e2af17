// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_where {
namespace {

constexpr uint32_t kEither = PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL | PG_INPUT_HOST_SCALAR;

PG_OP("where")
    .category("elementwise")
    .doc("x where condition is true, else y. One of x and y may be a number.")
    .input("condition", kBool, "any shape")
    .input("x", kStored, "a shape that broadcasts, or a number", kEither)
    .input("y", kStored, "a shape that broadcasts, or a number", kEither)
    .scalar()
    .output("z", "the shape that condition, x and y broadcast to")
    .traits(PG_OP_ELEMENTWISE)
    .expression("Select(condition, x, y)")
    .shape([](ShapeContext& c) {
      uint32_t some = c.has(1) ? 1 : 2;
      c.need(c.has(some), "x and y are both numbers; one must be a tensor");
      Shape shape = broadcast(c.shape(0), c.shape(some));
      if (c.has(1) && c.has(2)) {
        c.check_same_dtype(2, 1);
        shape = broadcast(shape, c.shape(2));
      }
      c.out(0).set(c.dtype(some), shape);
    })
    .saves("condition")
    .grad([](GradContext& g) {
      Value condition = g.in(0), d = g.dout(0);
      if (g.needed(1)) g.din(1) = sum_like(where(condition, d, 0.0), g.in(1));
      if (g.needed(2)) g.din(2) = sum_like(where(condition, 0.0, d), g.in(2));
    });

}  // namespace
}  // namespace pg::schema_where
