// SPDX-License-Identifier: Apache-2.0
// index_select and index_select_grad: whole slices along one axis.
#include "../rules.hpp"

namespace pg::schema_index_select {
namespace {

OpBuilder& axis_attr(OpBuilder& op) { return op.attr<Axis>("axis", 0, "axis to select along").required(); }

// Shape of x with `axis` as long as index, which may be 0-dim and then counts as one. A 0-dim x has one element to
// select, once.
Shape selected(const ShapeContext& c, uint32_t x, uint32_t index) {
  c.check_index(index);
  c.check_rank(index, 0, 1);
  uint32_t axis = c.check_axis("axis", x);
  Shape shape = c.shape(x);
  Dim count = c.rank(index) == 0 ? Dim(1) : c.dim(index, 0);
  c.need(shape.rank > 0 || count.may_equal(1), "%s has %lld elements; expected 1, as %s has no axes",
         c.text(index).c_str(), static_cast<long long>(count.value), c.text(x).c_str());
  if (shape.rank > 0) shape.dims[axis] = count.value;
  return shape;
}

const bool declared = [] {
  axis_attr(declare_op("index_select").category("index"))
      .attr<int>("shown", 0, "the axis' number in messages, from 1; 0: that of x")
      .internal()
      .doc("The slices of x at the indices along `axis`, copied. An index out of range is an error that names it.")
      .input("x", kStored, "[...]")
      .input("index", kInteger, "[n] or []: from 0")
      .output("y", "x with n slices along axis")
      .shape([](ShapeContext& c) { c.out(0).set(c.dtype(0), selected(c, 0, 1)); })
      .saves("index")
      .grad([](GradContext& g) {
        static constinit OpRef op("index_select_grad");
        g.din(0) = g.call(op, g.dout(0), g.in(1), g.in(0));
      });

  axis_attr(declare_op("index_select_grad").category("index"))
      .doc("Zeros in the shape of x, plus each slice of dy at its index along `axis`; equal indices add up, in order.")
      .input("dy", kReal, "x with n slices along axis")
      .input("index", kInteger, "[n] or []: from 0")
      .input("x", kReal, "[...]", PG_INPUT_META)
      .output("dx", "shape of x")
      .shape([](ShapeContext& c) {
        Shape want = selected(c, 2, 1);
        c.check_rank(0, want.rank, want.rank);
        for (uint32_t i = 0; i < want.rank; i++) c.check_dim(0, i, want[i], "the shape of the selection");
        c.out(0).set(c.dtype(0), c.shape(2));
      })
      .saves("index")
      .grad([](GradContext& g) {
        static constinit OpRef op("index_select");
        g.din(0) = g.call(op, g.dout(0), g.in(1));
      });
  return true;
}();

}  // namespace
}  // namespace pg::schema_index_select
