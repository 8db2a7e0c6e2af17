// SPDX-License-Identifier: Apache-2.0
#include "empty_axis.hpp"

namespace pg::schema_log_softmax {
namespace {

PG_OP("log_softmax")
    .category("neural")
    .doc("Logarithm of `softmax`: x - log(sum(exp(x))), without overflow.")
    .input("x", kFloating, "[...]")
    .attr<Axis>("axis", -1, "axis to normalise")
    .output("y", "shape of x")
    .numeric(PG_NUMERIC_FLOAT32)
    .shape([](ShapeContext& c) {
      c.check_axis("axis", 0);
      c.out(0) = c.in(0);
    })
    .saves("y")
    .grad([](GradContext& g) {
      Value dy = g.dout(0);
      g.din(0) = dy - exp(g.out(0)) * sum(dy, make_ints({g.get<Axis>("axis")}), true);
    })
    .decompose([](ExpandContext& e) {
      pg_ints axis = make_ints({e.get<Axis>("axis")});
      if (is_empty_axis(e.in(0), axis)) return void(e.out(0) = exp(e.in(0)));  // of nothing there is no largest
      Value shifted = e.in(0) - amax(e.in(0), axis, true);
      e.out(0) = shifted - log(sum(exp(shifted), axis, true));
    });

}  // namespace
}  // namespace pg::schema_log_softmax
