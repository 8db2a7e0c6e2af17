// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_prelu {
namespace {

// weight so that it broadcasts against x: one for all, or one for each position of axis 2.
Value spread(Value weight, Value x) {
  pg_ints shape = make_ints({weight.meta().rank == 0 ? 1 : weight.dim(0)});
  for (uint32_t i = 2; i < x.rank(); i++) shape.value[shape.count++] = 1;
  return x.rank() < 2 ? reshape(weight, pg_ints{}) : reshape(weight, shape);
}

PG_OP("prelu")
    .category("elementwise")
    .doc("x where x > 0, else weight * x (He, Zhang, Ren, Sun 2015).")
    .input("x", kFloating, "any shape")
    .input("weight", kFloating, "[1], or [size of axis 2 of x]: the slopes for negative x")
    .output("y", "shape of x")
    .shape([](ShapeContext& c) {
      c.check_same_dtype(1, 0);
      c.check_rank(1, 0, 1);
      Dim count = c.shape(1).count();
      Dim channels = c.rank(0) > 1 ? c.dim(0, 1) : Dim(1);
      c.need(count.is(1) || count.may_equal(channels), "%s has another number of slopes than %s has channels",
             c.text(1).c_str(), c.text(0).c_str());
      c.out(0) = c.in(0);
    })
    .saves("x", "weight")
    .grad([](GradContext& g) {
      Value x = g.in(0), d = g.dout(0), weight = g.in(1), wide = spread(weight, x), positive = gt(x, 0.0);
      if (g.needed(0)) g.din(0) = where(positive, d, d * wide);
      if (g.needed(1)) g.din(1) = reshape_like(sum_like(where(positive, 0.0, d * x), wide), weight);
    })
    .decompose([](ExpandContext& e) {
      Value x = e.in(0);
      e.out(0) = where(gt(x, 0.0), x, x * spread(e.in(1), x));
    });

}  // namespace
}  // namespace pg::schema_prelu
