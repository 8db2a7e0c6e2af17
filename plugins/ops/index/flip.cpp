// SPDX-License-Identifier: Apache-2.0
// flip and roll_axes: the positions of axes in another order.
#include <algorithm>

#include "../positions.hpp"

namespace pg::schema_flip {
namespace {

void declare_flip() {
  declare_op("flip")
      .category("index")
      .doc("x with the positions of `axes` in reverse order, copied.")
      .input("x", kStored, "[...]")
      .attr<Axes>("axes", {}, "axes to turn")
      .required()
      .output("y", "shape of x")
      .shape([](ShapeContext& c) {
        c.check_axes("axes", 0, false);
        c.out(0) = c.in(0);
      })
      .grad([](GradContext& g) {
        static constinit OpRef op("flip");
        g.din(0) = g.call(op, g.dout(0));
      })
      .decompose([](ExpandContext& e) {
        static constinit OpRef op("index_select", "axis");
        Value x = e.in(0);
        const pg_ints axes = e.get<Axes>("axes");
        for (int64_t i = 0; i < axes.count && x.rank() > 0; i++) {
          int64_t axis = wrap_axis(axes.value[i], x.rank()), n = known(x.dim(static_cast<uint32_t>(axis)));
          Value places = static_cast<double>(n - 1) - positions(x, n);
          x = Call(e.builder(), op).input(x).input(places).set(0, axis).emit();
        }
        e.out(0) = x.id == e.in(0).id ? clone(x) : x;
      });
}

Value part(Value x, uint32_t axis, int64_t start, int64_t stop) {
  static constinit OpRef op("slice", "starts", "stops");
  pg_ints starts{}, stops{};
  starts.count = stops.count = axis + 1;
  for (uint32_t i = 0; i < axis; i++) stops.value[i] = INT64_MAX;
  starts.value[axis] = start;
  stops.value[axis] = stop;
  return Call(x.builder, op).input(x).set(0, starts).set(1, stops).emit();
}

void declare_roll() {
  declare_op("roll_axes")
      .category("index")
      .doc("x with the positions of its axes moved; what leaves at one end enters at the other.")
      .input("x", kStored, "[...]")
      .attr<Ints>("shifts", {}, "by how much each axis moves, first axis first")
      .required()
      .output("y", "shape of x")
      .shape([](ShapeContext& c) {
        int64_t count = c.get<Ints>("shifts").count;
        c.need(count <= static_cast<int64_t>(c.rank(0)), "%lld shifts for %s, which has %u axes",
               static_cast<long long>(count), c.text(0).c_str(), c.rank(0));
        c.out(0) = c.in(0);
      })
      .grad([](GradContext& g) {
        static constinit OpRef op("roll_axes", "shifts");
        pg_ints back = g.get<Ints>("shifts");
        for (int64_t i = 0; i < back.count; i++) back.value[i] = -std::max(back.value[i], -INT64_MAX);
        g.din(0) = Call(g.builder(), op).input(g.dout(0)).set(0, back).emit();
      })
      .decompose([](ExpandContext& e) {
        static constinit OpRef join("cat", "axis");
        Value x = e.in(0);
        const pg_ints shifts = e.get<Ints>("shifts");
        for (uint32_t i = 0; i < static_cast<uint32_t>(shifts.count); i++) {
          int64_t n = known(x.dim(i)), by = n > 0 ? (shifts.value[i] % n + n) % n : 0;
          if (by == 0) continue;
          std::vector<Value> parts{part(x, i, n - by, n), part(x, i, 0, n - by)};
          x = Call(e.builder(), join).inputs(parts).set(0, i).emit();
        }
        e.out(0) = x.id == e.in(0).id ? clone(x) : x;
      });
}

const bool declared = (declare_flip(), declare_roll(), true);

}  // namespace
}  // namespace pg::schema_flip
