// SPDX-License-Identifier: Apache-2.0
// gather and gather_grad: single elements along one axis.
#include "../rules.hpp"

namespace pg::schema_gather {
namespace {

OpBuilder& axis_attr(OpBuilder& op) { return op.attr<Axis>("axis", 0, "axis that the indices run along").required(); }

void check_gather(const ShapeContext& c, uint32_t x, uint32_t index) {
  c.check_index(index);
  uint32_t axis = c.check_axis("axis", x), rank = c.rank(x);
  c.check_rank(index, rank, rank);
  for (uint32_t i = 0; i < rank; i++) {
    Dim have = c.dim(x, i), want = c.dim(index, i);
    bool known = !have.symbolic() && !want.symbolic();
    c.need(i == axis || !known || want.value <= have.value, "%s is larger than %s along axis %u, which is not gathered",
           c.text(index).c_str(), c.text(x).c_str(), i + 1);
  }
}

const bool declared = [] {
  axis_attr(declare_op("gather").category("index"))
      .doc(
          "y[i][j]... = x[index[i][j]...][j]... for axis 1, and likewise for the others. An index out of range is an "
          "error that names it.")
      .input("x", kStored, "[...]")
      .input("index", kInteger, "as many axes as x, none longer but `axis`: from 0")
      .output("y", "shape of index")
      .shape([](ShapeContext& c) {
        check_gather(c, 0, 1);
        c.out(0).set(c.dtype(0), c.shape(1));
      })
      .saves("index")
      .grad([](GradContext& g) {
        static constinit OpRef op("gather_grad");
        g.din(0) = g.call(op, g.dout(0), g.in(1), g.in(0));
      });

  axis_attr(declare_op("gather_grad").category("index"))
      .doc("Zeros in the shape of x, plus each element of dy where gather read it; equal places add up, in order.")
      .input("dy", kFloating, "shape of index")
      .input("index", kInteger, "as many axes as x: from 0")
      .input("x", kFloating, "[...]", PG_INPUT_META)
      .output("dx", "shape of x")
      .shape([](ShapeContext& c) {
        check_gather(c, 2, 1);
        c.check_same_shape(0, 1);
        c.out(0).set(c.dtype(0), c.shape(2));
      })
      .saves("index")
      .grad([](GradContext& g) {
        static constinit OpRef op("gather");
        g.din(0) = g.call(op, g.dout(0), g.in(1));
      });
  return true;
}();

}  // namespace
}  // namespace pg::schema_gather
