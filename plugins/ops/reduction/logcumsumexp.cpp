// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "../rules.hpp"

namespace pg::schema_logcumsumexp {
namespace {

Value run(Value x, int64_t axis, bool reverse) {
  static constinit OpRef op("logcumsumexp", "axis", "reverse");
  return Call(x.builder, op).input(x).set(0, axis).set(1, reverse).emit();
}

// exp(x_k) times the sum of d_j exp(-y_j) over all j that x_k counts in, for positive d: in logarithms, as exp(-y_j)
// alone may overflow. Where y is -inf there is nothing to share.
Value share(Value x, Value y, Value d, int64_t axis, bool reverse) {
  Value counts = logical_and(gt(d, 0.0), gt(y, -INFINITY));
  Value logs = where(counts, log(where(counts, d, 1.0)) - where(counts, y, 0.0), -INFINITY);
  return exp(run(logs, axis, !reverse) + x);
}

PG_OP("logcumsumexp")
    .category("reduction")
    .doc("log of the sum of exp(x) up to each element, without overflow.")
    .input("x", kFloating, "[...]")
    .attr<Axis>("axis", 0, "axis to run along")
    .required()
    .attr<bool>("reverse", false, "from each element to the end instead")
    .output("y", "shape of x")
    .numeric(PG_NUMERIC_FLOAT32)
    .shape([](ShapeContext& c) {
      c.check_axis("axis", 0);
      c.out(0) = c.in(0);
    })
    .saves("x", "y")
    .grad([](GradContext& g) {
      Value x = g.in(0), y = g.out(0), d = g.dout(0);
      int64_t axis = g.get<Axis>("axis");
      bool reverse = g.get<bool>("reverse");
      g.din(0) = share(x, y, d, axis, reverse) - share(x, y, -d, axis, reverse);
    });

}  // namespace
}  // namespace pg::schema_logcumsumexp
