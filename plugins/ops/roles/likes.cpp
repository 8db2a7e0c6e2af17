// SPDX-License-Identifier: Apache-2.0
// zeros_like, ones_like and sum_like: what autograd makes its cotangents with.
#include "../rules.hpp"

namespace pg::schema_likes {
namespace {

PG_OP("zeros_like")
    .category("creation")
    .doc("Zeros in the shape, dtype and device of x.")
    .role("zeros_like")
    .input("x", kStored, "any shape", PG_INPUT_META)
    .output("y", "shape of x")
    .traits(PG_OP_NO_GRAD)
    .shape(like_input);

PG_OP("ones_like")
    .category("creation")
    .doc("Ones in the shape, dtype and device of x.")
    .role("ones_like")
    .input("x", kStored, "any shape", PG_INPUT_META)
    .output("y", "shape of x")
    .traits(PG_OP_NO_GRAD)
    .shape(like_input);

PG_OP("sum_like")
    .category("reduction")
    .doc("dy summed over the axes along which x would be broadcast to its shape: undoes broadcasting.")
    .role("sum_like")
    .input("dy", kAnyDtype, "a shape that x broadcasts to")
    .input("x", kAnyDtype, "[...]", PG_INPUT_META)
    .output("dx", "shape of x, dtype of dy")
    .traits(PG_OP_REDUCTION)
    .shape([](ShapeContext& c) {
      uint32_t rank = c.rank(1), more = c.rank(0);
      bool fits = more >= rank;
      for (uint32_t i = 0; fits && i < rank; i++)
        fits = c.dim(1, i).is(1) || c.dim(1, i).may_equal(c.dim(0, more - rank + i));
      c.need(fits, "%s does not broadcast to %s", c.text(1).c_str(), c.text(0).c_str());
      c.out(0).set(c.dtype(0), c.shape(1));
    })
    .grad([](GradContext& g) { g.din(0) = expand_like(g.dout(0), g.in(0)); });

}  // namespace
}  // namespace pg::schema_likes
