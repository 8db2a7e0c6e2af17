// SPDX-License-Identifier: Apache-2.0
// squeeze and unsqueeze: axes of size 1 go and come.
#include "../rules.hpp"

namespace pg::schema_squeeze {
namespace {

PG_OP("squeeze")
    .category("view")
    .doc("x without axes of size 1: without all of them, or without those of `axes` that have size 1.")
    .input("x", kStored, "[...]")
    .attr<Axes>("axes", {}, "axes to remove where they have size 1; none means all")
    .output("y", "x without these axes")
    .traits(PG_OP_VIEW)
    .shape([](ShapeContext& c) {
      AxisSet axes = c.check_axes("axes", 0);
      const pg_tensor& x = c.in(0);
      Shape shape;
      int64_t stride[PG_MAX_RANK];
      for (uint32_t i = 0; i < x.rank; i++) {
        if (axes.has(i) && x.shape[i] == 1) continue;
        if (x.stride != nullptr) stride[shape.rank] = x.stride[i];
        shape.push(x.shape[i]);
      }
      OutputMeta out = c.out(0).set(c.dtype(0), shape);
      if (x.stride != nullptr) out.view(stride, 0);
    })
    .grad([](GradContext& g) { g.din(0) = reshape_like(g.dout(0), g.in(0)); })
    .write_back([](ExpandContext& e) { e.out(0) = reshape_like(e.in(1), e.in(0)); });

PG_OP("unsqueeze")
    .category("view")
    .doc("x with a new axis of size 1.")
    .input("x", kStored, "[...]")
    .attr<Axis>("axis", 0, "where the new axis stands in y")
    .required()
    .output("y", "x with one axis more")
    .traits(PG_OP_VIEW)
    .shape([](ShapeContext& c) {
      const pg_tensor& x = c.in(0);
      int64_t given = c.get<Axis>("axis"), n = static_cast<int64_t>(x.rank) + 1;
      c.need(given >= -n && given < n, "axis %lld is out of range for a new axis of %s; expected 1..%lld or -%lld..-1",
             static_cast<long long>(given >= 0 ? given + 1 : given), c.text(0).c_str(), static_cast<long long>(n),
             static_cast<long long>(n));
      uint32_t axis = static_cast<uint32_t>(given < 0 ? given + n : given);
      Shape shape = c.shape(0);
      shape.insert(axis, 1);
      OutputMeta out = c.out(0).set(c.dtype(0), shape);
      if (x.stride == nullptr) return;
      int64_t stride[PG_MAX_RANK];
      for (uint32_t i = 0; i < shape.rank; i++) {
        if (i == axis)  // any would do; this one keeps dense tensors dense
          stride[i] = i < x.rank ? x.stride[i] * x.shape[i] : 1;
        else
          stride[i] = x.stride[i < axis ? i : i - 1];
      }
      out.view(stride, 0);
    })
    .grad([](GradContext& g) { g.din(0) = reshape_like(g.dout(0), g.in(0)); })
    .write_back([](ExpandContext& e) { e.out(0) = reshape_like(e.in(1), e.in(0)); });

}  // namespace
}  // namespace pg::schema_squeeze
