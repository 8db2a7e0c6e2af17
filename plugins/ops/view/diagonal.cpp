// SPDX-License-Identifier: Apache-2.0
// diagonal, and the two operators that its gradient and writing through it need.
#include "../rules.hpp"

namespace pg {
namespace {

// The two axes become one, the last; strides and offset too where x has strides.
Shape diagonal_of(const ShapeContext& c, uint32_t input, int64_t* stride, int64_t* start) {
  const pg_tensor& x = c.in(input);
  c.check_rank(input, 2);
  uint32_t a = c.check_axis("axis1", input), b = c.check_axis("axis2", input);
  c.need(a != b, "axis1 and axis2 are both %u; expected two axes", a + 1);
  int64_t off = c.get<int>("offset");
  Dim rows = x.shape[a], columns = x.shape[b];
  Dim down = off < 0 ? rows + Dim(off) : rows, right = off > 0 ? columns - Dim(off) : columns;
  Dim length = max(min(down, right), 0);
  Shape shape;
  *start = 0;
  for (uint32_t i = 0; i < x.rank; i++) {
    if (i == a || i == b) continue;
    if (x.stride != nullptr) stride[shape.rank] = x.stride[i];
    shape.push(x.shape[i]);
  }
  if (x.stride != nullptr) {
    stride[shape.rank] = x.stride[a] + x.stride[b];
    if (!length.is(0)) *start = off < 0 ? -off * x.stride[a] : off * x.stride[b];
  }
  shape.push(length);
  return shape;
}

OpBuilder& diagonal_attrs(OpBuilder& op) {
  return op.attr<int>("offset", 0, "which diagonal: 0 the main one, above it positive, below it negative")
      .attr<Axis>("axis1", 0, "axis of the rows")
      .attr<Axis>("axis2", 1, "axis of the columns");
}

void check_part(ShapeContext& c, uint32_t part, uint32_t whole) {
  int64_t stride[PG_MAX_RANK], start;
  Shape want = diagonal_of(c, whole, stride, &start);
  c.check_rank(part, want.rank, want.rank);
  for (uint32_t i = 0; i < want.rank; i++) c.check_dim(part, i, want[i], "the shape of the diagonal");
  c.out(0).set(c.dtype(part), c.shape(whole));
}

Value diagonal(const ValueContext& c, Value x) {
  static constinit OpRef op("diagonal");
  return c.call(op, x);
}
Value scatter(const ValueContext& c, Value x, Value part) {
  static constinit OpRef op("diagonal_scatter");
  return c.call(op, x, part);
}
void write(Value target, Value source) {
  static constinit OpRef op("copy");
  Call(target.builder, op).input(target).input(source).emit(PG_EMIT_IN_PLACE);
}

const bool declared = [] {
  diagonal_attrs(declare_op("diagonal").category("view"))
      .doc("A diagonal of the matrices that two axes of x make, as the last axis; without a copy.")
      .input("x", kAnyDtype, "[...], at least 2 axes")
      .output("y", "x without the two axes, and the diagonal behind")
      .traits(PG_OP_VIEW)
      .shape([](ShapeContext& c) {
        int64_t stride[PG_MAX_RANK], start;
        Shape shape = diagonal_of(c, 0, stride, &start);
        OutputMeta out = c.out(0).set(c.dtype(0), shape);
        if (c.in(0).stride != nullptr) out.view(stride, start);
      })
      .grad([](GradContext& g) {
        static constinit OpRef op("diagonal_grad");
        g.din(0) = g.call(op, g.dout(0), g.in(0));
      })
      .write_back([](ExpandContext& e) { e.out(0) = scatter(e, e.in(0), e.in(1)); });

  diagonal_attrs(declare_op("diagonal_grad").category("view"))
      .doc("Zeros in the shape of x, with dy where `diagonal` would have read.")
      .input("dy", kAnyDtype, "shape of the diagonal")
      .input("x", kAnyDtype, "[...]", PG_INPUT_META)
      .output("dx", "shape of x, dtype of dy")
      .shape([](ShapeContext& c) { check_part(c, 0, 1); })
      .grad([](GradContext& g) { g.din(0) = diagonal(g, g.dout(0)); })
      .decompose([](ExpandContext& e) {
        Value dx = cast(zeros_like(e.in(1)), e.in(0).dtype());
        write(diagonal(e, dx), e.in(0));
        e.out(0) = dx;
      });

  diagonal_attrs(declare_op("diagonal_scatter").category("view"))
      .doc("A copy of x with `part` where `diagonal` would read.")
      .input("x", kAnyDtype, "[...]")
      .input("part", kAnyDtype, "shape of the diagonal")
      .output("y", "shape of x")
      .shape([](ShapeContext& c) {
        c.check_same_dtype(1, 0);
        check_part(c, 1, 0);
      })
      .grad([](GradContext& g) {
        Value d = g.dout(0);
        if (g.needed(0)) g.din(0) = scatter(g, d, zeros_like(g.in(1)));
        if (g.needed(1)) g.din(1) = diagonal(g, d);
      })
      .decompose([](ExpandContext& e) {
        Value y = clone(e.in(0));
        write(diagonal(e, y), e.in(1));
        e.out(0) = y;
      });
  return true;
}();

}  // namespace
}  // namespace pg
