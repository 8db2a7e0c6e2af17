// SPDX-License-Identifier: Apache-2.0
// cummax and cummin: the extreme so far and where it is.
#include "../rules.hpp"

namespace pg::schema_cumulative_extreme {
namespace {

void declare(const char* name, const char* doc) {
  declare_op(name)
      .category("reduction")
      .doc(doc)
      .input("x", kRealOrBool, "[...]")
      .attr<Axis>("axis", 0, "axis to run along")
      .required()
      .output("y", "shape of x")
      .output("index", "int64, shape of x: positions along the axis, from 0")
      .shape([](ShapeContext& c) {
        c.check_axis("axis", 0);
        c.out(0) = c.in(0);
        c.out(1).set(PG_I64, c.shape(0));
      })
      .saves("index")
      .grad([](GradContext& g) {
        static constinit OpRef op("gather_grad", "axis");
        g.din(0) =
            Call(g.builder(), op).input(g.dout(0)).input(g.out(1)).input(g.in(0)).set(0, g.get<Axis>("axis")).emit();
      });
}

const bool declared = [] {
  declare("cummax", "Largest element up to each, and its position: the last of equal ones. NaN counts as largest.");
  declare("cummin", "Smallest element up to each, and its position: the last of equal ones. NaN counts as smallest.");
  return true;
}();

}  // namespace
}  // namespace pg::schema_cumulative_extreme
