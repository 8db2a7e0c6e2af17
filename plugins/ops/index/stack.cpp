// SPDX-License-Identifier: Apache-2.0
// stack: tensors of one shape along a new axis.
#include "../rules.hpp"

namespace pg::schema_stack {
namespace {

// Position k of an axis of dy, which disappears.
Value part(Value dy, int64_t axis, int64_t k) {
  static constinit OpRef op("slice", "starts", "stops", "drop");
  pg_ints starts{}, stops{}, drop{};
  starts.count = stops.count = drop.count = axis + 1;
  for (int64_t i = 0; i < axis; i++) stops.value[i] = INT64_MAX;
  starts.value[axis] = k;
  stops.value[axis] = k + 1;
  drop.value[axis] = 1;
  return Call(dy.builder, op).input(dy).set(0, starts).set(1, stops).set(2, drop).emit();
}

PG_OP("stack")
    .category("index")
    .doc("The tensors, all of one shape, along a new axis.")
    .input("xs", kStored, "equal shapes", PG_INPUT_VARIADIC | PG_INPUT_PROMOTE)
    .attr<Axis>("axis", 0, "where the new axis stands in y")
    .output("y", "their shape, with an axis as long as the list")
    .shape([](ShapeContext& c) {
      auto xs = c.group(0);
      c.need(!xs.empty(), "xs is empty; expected at least one tensor");
      for (size_t k = 0; k < xs.size(); k++) c.need(xs[k] != nullptr, "xs[%zu] is missing", k + 1);
      const pg_tensor& first = *xs[0];
      int64_t given = c.get<Axis>("axis"), n = static_cast<int64_t>(first.rank) + 1;
      c.need(given >= -n && given < n, "axis %lld is out of range for a new axis of %s; expected 1..%lld or -%lld..-1",
             static_cast<long long>(given >= 0 ? given + 1 : given), shape_text(first).c_str(),
             static_cast<long long>(n), static_cast<long long>(n));
      for (size_t k = 1; k < xs.size(); k++) {
        const pg_tensor& x = *xs[k];
        bool fits = x.rank == first.rank;
        for (uint32_t i = 0; fits && i < x.rank; i++) fits = dim_equal(x.shape[i], first.shape[i]);
        c.need(fits, "xs[%zu] is %s; expected %s, the shape of xs[1]", k + 1, shape_text(x).c_str(),
               shape_text(first).c_str());
        c.need(dtype_of(x) == dtype_of(first), "xs[%zu] is %s; expected %s", k + 1, dtype_name(dtype_of(x)),
               dtype_name(dtype_of(first)));
      }
      Shape shape(first);
      shape.insert(static_cast<uint32_t>(given < 0 ? given + n : given), static_cast<int64_t>(xs.size()));
      c.out(0).set(dtype_of(first), shape);
    })
    .grad([](GradContext& g) {
      int64_t axis = wrap_axis(g.get<Axis>("axis"), g.dout(0).rank());
      for (uint32_t k = 0; k < g.size(0); k++)
        if (g.needed(0, k)) g.din(0, k) = part(g.dout(0), axis, k);
    })
    .decompose([](ExpandContext& e) {
      static constinit OpRef op("cat", "axis");
      std::vector<Value> xs = e.group(0);
      int64_t axis = e.get<Axis>("axis");
      if (axis < 0) axis += static_cast<int64_t>(xs[0].rank()) + 1;
      for (Value& x : xs) x = unsqueeze(x, axis);
      e.out(0) = Call(e.builder(), op).inputs(xs).set(0, axis).emit();
    });

}  // namespace
}  // namespace pg::schema_stack
