// SPDX-License-Identifier: Apache-2.0
#include "strides.hpp"

namespace pg::schema_reshape {
namespace {

// Replaces the -1 of the attribute by what the number of elements leaves.
Shape resolve(ShapeContext& c) {
  Shape shape(c.get<Dims>("shape"));
  Dim total = c.shape(0).count(), known = 1;
  int64_t hole = -1;
  for (uint32_t i = 0; i < shape.rank; i++) {
    if (shape.dims[i] == -1) {
      c.need(hole < 0, "shape %s has more than one -1", shape.text().c_str());
      hole = i;
      continue;
    }
    c.need(shape[i].symbolic() || shape.dims[i] >= 0, "the size %lld of axis %u is negative",
           static_cast<long long>(shape.dims[i]), i + 1);
    known = known * Dim(shape.dims[i]);
  }
  std::string want = shape.text();
  if (hole >= 0) {
    c.need(!known.is(0), "%s cannot become %s: any size would do for the -1", c.text(0).c_str(), want.c_str());
    Dim rest = total / known;
    shape.dims[hole] = rest.value;
    known = known * rest;
  }
  c.need(known.may_equal(total), "%s has %lld elements and cannot become %s", c.text(0).c_str(),
         static_cast<long long>(total.value), want.c_str());
  return shape;
}

PG_OP("reshape")
    .category("view")
    .doc("The elements of x, in row-major order, in another shape. A view where strides can say it, else a copy.")
    .input("x", kStored, "[...]")
    .attr<Dims>("shape", {}, "the new shape; one -1 takes what is left")
    .required()
    .output("y", "`shape`")
    .traits(PG_OP_VIEW)
    .shape([](ShapeContext& c) { reshape_output(c, resolve(c)); })
    .grad([](GradContext& g) { g.din(0) = reshape_like(g.dout(0), g.in(0)); })
    .write_back([](ExpandContext& e) { e.out(0) = reshape_like(e.in(1), e.in(0)); });

PG_OP("reshape_like")
    .category("view")
    .doc("The elements of x, in row-major order, in the shape of `like`.")
    .input("x", kStored, "[...]")
    .input("like", kStored, "as many elements as x", PG_INPUT_META)
    .output("y", "shape of like")
    .traits(PG_OP_VIEW)
    .shape([](ShapeContext& c) {
      Shape shape = c.shape(1);
      c.need(c.shape(0).count().may_equal(shape.count()), "%s does not have the number of elements of %s",
             c.text(0).c_str(), c.text(1).c_str());
      reshape_output(c, shape);
    })
    .grad([](GradContext& g) { g.din(0) = reshape_like(g.dout(0), g.in(0)); })
    .write_back([](ExpandContext& e) { e.out(0) = reshape_like(e.in(1), e.in(0)); });

}  // namespace
}  // namespace pg::schema_reshape
