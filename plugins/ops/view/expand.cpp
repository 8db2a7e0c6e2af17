// SPDX-License-Identifier: Apache-2.0
// expand and expand_like. Not writable: one element shows in many places.
#include "strides.hpp"

namespace pg::schema_expand {
namespace {

void check_expands(const ShapeContext& c, const Shape& shape) {
  uint32_t rank = c.rank(0);
  bool fits = shape.rank >= rank;
  for (uint32_t i = 0; fits && i < rank; i++) {
    Dim from = c.dim(0, i), to = shape[shape.rank - rank + i];
    fits = from.is(1) || from.may_equal(to);
  }
  c.need(fits, "%s does not broadcast to %s", c.text(0).c_str(), shape.text().c_str());
}

PG_OP("expand")
    .category("view")
    .doc("x repeated along axes of size 1, and along new leading axes, without a copy.")
    .input("x", kStored, "[...]")
    .attr<Dims>("shape", {}, "the new shape; -1 keeps an axis")
    .required()
    .output("y", "`shape`")
    .traits(PG_OP_VIEW)
    .shape([](ShapeContext& c) {
      Shape shape(c.get<Dims>("shape"));
      uint32_t rank = c.rank(0);
      for (uint32_t i = 0; i < shape.rank; i++) {
        if (shape.dims[i] != -1) continue;
        c.need(i + rank >= shape.rank, "the new axis %u has no size to keep; -1 is for axes of %s", i + 1,
               c.text(0).c_str());
        shape.dims[i] = c.dim(0, i + rank - shape.rank).value;
      }
      check_expands(c, shape);
      expand_output(c, shape);
    })
    .grad([](GradContext& g) { g.din(0) = sum_like(g.dout(0), g.in(0)); });

PG_OP("expand_like")
    .category("view")
    .doc("x broadcast to the shape of `like`, without a copy.")
    .input("x", kStored, "[...]")
    .input("like", kStored, "a shape that x broadcasts to", PG_INPUT_META)
    .output("y", "shape of like")
    .traits(PG_OP_VIEW)
    .shape([](ShapeContext& c) {
      check_expands(c, c.shape(1));
      expand_output(c, c.shape(1));
    })
    .grad([](GradContext& g) { g.din(0) = sum_like(g.dout(0), g.in(0)); });

}  // namespace
}  // namespace pg::schema_expand
