// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_glu {
namespace {

// The part of x at a position of an axis, without that axis.
Value cut(Value x, uint32_t axis, int64_t position) {
  static constinit OpRef slice("slice", "starts", "drop");
  pg_ints starts{}, drop{};
  starts.count = drop.count = axis + 1;
  starts.value[axis] = position;
  drop.value[axis] = 1;
  return Call(x.builder, slice).input(x).set(0, starts).set(1, drop).emit();
}

// Half 0 or 1 of x along an axis: the axis becomes two, of which the first is cut. Works where the size is a symbol.
Value half(Value x, uint32_t axis, int64_t which) {
  int64_t size = (Dim(x.dim(axis)) / Dim(2)).value;
  pg_ints halved{};
  for (uint32_t i = 0; i < x.rank(); i++) halved.value[halved.count++] = i == axis ? size : x.dim(i);
  if (x.rank() == PG_MAX_RANK) {  // no room for one more axis: the others become one before it and one behind
    Dim before(1), behind(1);
    for (uint32_t i = 0; i < axis; i++) before = before * Dim(x.dim(i));
    for (uint32_t i = axis + 1; i < x.rank(); i++) behind = behind * Dim(x.dim(i));
    return reshape(cut(reshape(x, {4, {before.value, 2, size, behind.value}}), 1, which), halved);
  }
  pg_ints split{};
  for (uint32_t i = 0; i < x.rank(); i++) {
    if (i == axis) split.value[split.count++] = 2;
    split.value[split.count++] = halved.value[i];
  }
  return cut(reshape(x, split), axis, which);
}

uint32_t axis_of(const AttrReader& a, Value x) {
  return static_cast<uint32_t>(wrap_axis(a.get<Axis>("axis"), x.rank()));
}

PG_OP("glu")
    .category("elementwise")
    .doc("The first half of x along `axis` times the sigmoid of the second (Dauphin, Fan, Auli, Grangier 2016).")
    .input("x", kFloating, "[...], even along `axis`")
    .attr<Axis>("axis", -1, "axis to halve")
    .output("y", "x with half the size along `axis`")
    .shape([](ShapeContext& c) {
      c.check_rank(0, 1);
      uint32_t axis = c.check_axis("axis", 0);
      Shape shape = c.shape(0);
      Dim size = shape[axis];
      c.need(size.symbolic() || size.value % 2 == 0, "%s: axis %u is %lld; expected an even size", c.text(0).c_str(),
             axis + 1, static_cast<long long>(size.value));
      shape.dims[axis] = (size / Dim(2)).value;
      c.out(0).set(c.dtype(0), shape);
    })
    .saves("x")
    .grad([](GradContext& g) {
      static constinit OpRef cat("cat", "axis");
      Value x = g.in(0), d = g.dout(0);
      uint32_t axis = axis_of(g, x);
      Value gate = sigmoid(half(x, axis, 1));
      Value parts[] = {d * gate, apply<"sigmoid_grad">(gate, d * half(x, axis, 0))};
      g.din(0) = Call(x.builder, cat).inputs(parts).set(0, axis).emit();
    })
    .decompose([](ExpandContext& e) {
      Value x = e.in(0);
      uint32_t axis = axis_of(e, x);
      e.out(0) = half(x, axis, 0) * sigmoid(half(x, axis, 1));
    });

}  // namespace
}  // namespace pg::schema_glu
