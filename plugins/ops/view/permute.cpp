// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_permute {
namespace {

pg_ints inverse(const pg_ints& axes) {
  pg_ints out{};
  out.count = axes.count;
  for (int64_t i = 0; i < axes.count; i++) out.value[wrap_axis(axes.value[i], static_cast<uint32_t>(axes.count))] = i;
  return out;
}

PG_OP("permute")
    .category("view")
    .doc("The axes of x in another order.")
    .input("x", kStored, "[...]")
    .attr<Axes>("axes", {}, "for each axis of y, the axis of x")
    .required()
    .output("y", "the axes of x, reordered")
    .traits(PG_OP_VIEW)
    .shape([](ShapeContext& c) {
      AxisSet all = c.check_axes("axes", 0, false);
      const pg_tensor& x = c.in(0);
      c.need(all.count == x.rank, "got %u axes for %s; expected each of its %u axes once", all.count, c.text(0).c_str(),
             x.rank);
      pg_ints axes = c.get<Axes>("axes");
      Shape shape;
      int64_t stride[PG_MAX_RANK] = {};
      for (uint32_t i = 0; i < x.rank; i++) {
        int64_t from = wrap_axis(axes.value[i], x.rank);
        shape.push(x.shape[from]);
        if (x.stride != nullptr) stride[i] = x.stride[from];
      }
      OutputMeta out = c.out(0).set(c.dtype(0), shape);
      if (x.stride != nullptr) out.view(stride, 0);
    })
    .grad([](GradContext& g) { g.din(0) = permute(g.dout(0), inverse(g.get<Axes>("axes"))); })
    .write_back([](ExpandContext& e) { e.out(0) = permute(e.in(1), inverse(e.get<Axes>("axes"))); });

}  // namespace
}  // namespace pg::schema_permute
