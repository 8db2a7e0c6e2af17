// SPDX-License-Identifier: Apache-2.0
#include "polygamma.hpp"

namespace pg::schema_polygamma {
namespace {

PG_OP("polygamma")
    .category("elementwise")
    .doc("The n-th derivative of digamma; digamma itself for n = 0.")
    .input("x", kFloating, "any shape")
    .attr<int>("n", 0, "which derivative, from 0")
    .required()
    .output("y", "shape of x")
    .traits(PG_OP_ELEMENTWISE | PG_OP_IN_PLACE)
    .expression("Polygamma(x; n)")
    .numeric(PG_NUMERIC_FLOAT32)
    .shape([](ShapeContext& c) {
      int64_t n = c.get<int>("n");
      c.need(n >= 0, "n is %lld; expected at least 0", static_cast<long long>(n));
      c.out(0) = c.in(0);
    })
    .saves("x")
    .grad([](GradContext& g) { g.din(0) = g.dout(0) * polygamma(g.in(0), g.get<int>("n") + 1); });

}  // namespace
}  // namespace pg::schema_polygamma
