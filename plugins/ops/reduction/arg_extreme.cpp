// SPDX-License-Identifier: Apache-2.0
// argmax and argmin.
#include "../rules.hpp"

namespace pg::schema_arg_extreme {
namespace {

void infer(ShapeContext& c) {
  bool keepdim = c.get<bool>("keepdim");
  Shape shape = c.shape(0);
  if (c.get<bool>("flat")) {
    c.need(!shape.count().is(0), "%s has no elements", c.text(0).c_str());
    for (uint32_t i = 0; i < shape.rank; i++) shape.dims[i] = 1;
    c.out(0).set(PG_I64, keepdim ? shape : Shape{});
    return;
  }
  uint32_t axis = c.check_axis("axis", 0);
  if (shape.rank > 0) {
    c.need(shape.dims[axis] != 0, "%s: axis %u is empty", c.text(0).c_str(), axis + 1);
    shape.dims[axis] = 1;
    if (!keepdim) shape.erase(axis);
  }
  c.out(0).set(PG_I64, shape);
}

void declare(const char* name, const char* doc) {
  declare_op(name)
      .category("reduction")
      .doc(doc)
      .input("x", kReal, "[...]")
      .attr<Axis>("axis", -1, "axis to search, unless `flat`")
      .attr<bool>("flat", true, "search all of x; the result is a position in row-major order")
      .attr<bool>("keepdim", false, "keep the reduced axes, with size 1")
      .output("y", "positions, from 0, int64: x without the searched axis")
      .traits(PG_OP_REDUCTION | PG_OP_NO_GRAD)
      .shape(infer);
}

const bool declared = [] {
  declare("argmax", "Position of the largest element, the first of equal ones; a NaN counts as largest.");
  declare("argmin", "Position of the smallest element, the first of equal ones; a NaN counts as smallest.");
  return true;
}();

}  // namespace
}  // namespace pg::schema_arg_extreme
