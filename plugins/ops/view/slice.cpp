// SPDX-License-Identifier: Apache-2.0
// slice, and the two operators that its gradient and writing through it need.
#include "../rules.hpp"

namespace pg {
namespace {

// One axis' entry, clamped to the axis as Python does.
struct Part {
  Dim start, length;
  int64_t step = 1;
  bool drop = false;
};

int64_t entry(const pg_ints& list, uint32_t i, int64_t otherwise) {
  return static_cast<int64_t>(i) < list.count ? list.value[i] : otherwise;
}

Dim clamp_position(int64_t position, Dim size) {
  if (position == INT64_MAX) return size;
  if (position == 0) return 0;
  return position < 0 ? max(size + Dim(position), 0) : min(Dim(position), size);
}

Part part_of(const ShapeContext& c, const pg_tensor& x, const char* name, uint32_t i) {
  int64_t start = entry(c.get<Ints>("starts"), i, 0), stop = entry(c.get<Ints>("stops"), i, INT64_MAX);
  Part part;
  part.step = entry(c.get<Ints>("steps"), i, 1);
  part.drop = entry(c.get<Ints>("drop"), i, 0) != 0;
  Dim size = x.shape[i];
  c.need(part.step >= 1, "the step of axis %u is %lld; expected at least 1", i + 1, static_cast<long long>(part.step));
  if (part.drop) {
    long long shown = start >= 0 ? start + 1 : start, n = size.value;
    bool inside = size.symbolic() || (start >= -size.value && start < size.value);
    c.need(inside, "position %lld is out of range for axis %u of %s %s; expected %s", shown, i + 1, name,
           shape_text(x).c_str(), n == 0 ? "none, as it is empty" : format("1..%lld or -%lld..-1", n, n).c_str());
    part.start = start < 0 ? size + Dim(start) : Dim(start);
    part.length = 1;
    return part;
  }
  part.start = clamp_position(start, size);
  // Without needless maxima: a whole axis keeps its very symbol.
  Dim end = clamp_position(stop, size), span = part.start.is(0) ? end : max(end - part.start, 0);
  part.length = part.step == 1 ? span : (span + Dim(part.step - 1)) / Dim(part.step);
  return part;
}

// The view's shape; strides and offset too where x has strides.
Shape sliced(const ShapeContext& c, const pg_tensor& x, const char* name, int64_t* stride, int64_t* offset) {
  c.need(c.get<Ints>("starts").count <= static_cast<int64_t>(x.rank), "%lld positions for %s %s, which has %u axes",
         static_cast<long long>(c.get<Ints>("starts").count), name, shape_text(x).c_str(), x.rank);
  Shape shape;
  *offset = 0;
  bool empty = false;
  for (uint32_t i = 0; i < x.rank; i++) {
    Part part = part_of(c, x, name, i);
    empty = empty || part.length.is(0);
    if (x.stride != nullptr) {
      *offset += part.start.value * x.stride[i];
      stride[shape.rank] = x.stride[i] * part.step;
    }
    if (!part.drop) shape.push(part.length);
  }
  if (empty) *offset = 0;  // keeps it inside the storage
  return shape;
}

OpBuilder& slice_attrs(OpBuilder& op) {
  return op.attr<Ints>("starts", {}, "first position of each axis, from 0; negative counts from the end")
      .attr<Ints>("stops", {}, "position behind the last; the largest int64 is the end")
      .attr<Ints>("steps", {}, "distance between positions, at least 1")
      .attr<Ints>("drop", {}, "1 removes the axis; only its start counts, and must be in range");
}

Value slice_of(const ValueContext& c, Value x) {
  static constinit OpRef op("slice");
  return c.call(op, x);
}
Value slice_grad(const ValueContext& c, Value dy, Value x) {
  static constinit OpRef op("slice_grad");
  return c.call(op, dy, x);
}
Value slice_scatter(const ValueContext& c, Value x, Value part) {
  static constinit OpRef op("slice_scatter");
  return c.call(op, x, part);
}

void write(Value target, Value source) {
  static constinit OpRef op("copy");
  Call(target.builder, op).input(target).input(source).emit(PG_EMIT_IN_PLACE);
}

void check_part(ShapeContext& c, uint32_t part, uint32_t whole) {
  int64_t stride[PG_MAX_RANK], offset;
  Shape want = sliced(c, c.in(whole), c.name(whole), stride, &offset);
  Shape got = c.shape(part);
  bool same = want.rank == got.rank;
  for (uint32_t i = 0; same && i < want.rank; i++) same = Dim(want.dims[i]).may_equal(Dim(got.dims[i]));
  c.need(same, "%s has another shape than the slice, %s", c.text(part).c_str(), want.text().c_str());
  c.out(0).set(c.dtype(part), c.shape(whole));
}

const bool declared = [] {
  slice_attrs(declare_op("slice").category("view"))
      .doc(
          "A part of x: one entry an axis, in order; axes without an entry stay whole. Ranges are half-open and "
          "clamped "
          "to the axis, as in Python.")
      .input("x", kAnyDtype, "[...]")
      .output("y", "the part")
      .traits(PG_OP_VIEW)
      .shape([](ShapeContext& c) {
        int64_t stride[PG_MAX_RANK], offset;
        Shape shape = sliced(c, c.in(0), c.name(0), stride, &offset);
        OutputMeta out = c.out(0).set(c.dtype(0), shape);
        if (c.in(0).stride != nullptr) out.view(stride, offset);
      })
      .grad([](GradContext& g) { g.din(0) = slice_grad(g, g.dout(0), g.in(0)); })
      .write_back([](ExpandContext& e) { e.out(0) = slice_scatter(e, e.in(0), e.in(1)); });

  slice_attrs(declare_op("slice_grad").category("view"))
      .doc("Zeros in the shape of x, with dy where `slice` would have read.")
      .input("dy", kAnyDtype, "shape of the slice")
      .input("x", kAnyDtype, "[...]", PG_INPUT_META)
      .output("dx", "shape of x, dtype of dy")
      .shape([](ShapeContext& c) { check_part(c, 0, 1); })
      .grad([](GradContext& g) { g.din(0) = slice_of(g, g.dout(0)); })
      .decompose([](ExpandContext& e) {
        Value dx = cast(zeros_like(e.in(1)), e.in(0).dtype());
        write(slice_of(e, dx), e.in(0));
        e.out(0) = dx;
      });

  slice_attrs(declare_op("slice_scatter").category("view"))
      .doc("A copy of x with `part` where `slice` would read.")
      .input("x", kAnyDtype, "[...]")
      .input("part", kAnyDtype, "shape of the slice")
      .output("y", "shape of x")
      .shape([](ShapeContext& c) {
        c.check_same_dtype(1, 0);
        check_part(c, 1, 0);
      })
      .grad([](GradContext& g) {
        Value d = g.dout(0);
        if (g.needed(0)) g.din(0) = slice_scatter(g, d, zeros_like(g.in(1)));
        if (g.needed(1)) g.din(1) = slice_of(g, d);
      })
      .decompose([](ExpandContext& e) {
        Value y = clone(e.in(0));
        write(slice_of(e, y), e.in(1));
        e.out(0) = y;
      });
  return true;
}();

}  // namespace
}  // namespace pg
