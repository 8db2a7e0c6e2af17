// SPDX-License-Identifier: Apache-2.0
// unfold and its gradient: windows along an axis. Not writable: an element shows in several windows.
#include <algorithm>

#include "../positions.hpp"

namespace pg::schema_unfold {
namespace {

// The shape of the windows, where x's axis is `axis`.
Shape windows(const ShapeContext& c, uint32_t input, uint32_t* axis) {
  c.check_rank(input, 1);
  *axis = c.check_axis("axis", input);
  int64_t size = c.get<int>("size"), step = c.get<int>("step");
  Dim n = c.dim(input, *axis);
  c.need(size >= 1 && step >= 1, "size is %lld and step %lld; expected at least 1", static_cast<long long>(size),
         static_cast<long long>(step));
  c.need(n.symbolic() || size <= n.value, "size is %lld, but axis %u of %s has %lld elements",
         static_cast<long long>(size), *axis + 1, c.text(input).c_str(), static_cast<long long>(n.value));
  Shape shape = c.shape(input);
  shape.dims[*axis] = ((n - Dim(size)) / Dim(step) + Dim(1)).value;
  shape.push(size);
  return shape;
}

OpBuilder& window_attrs(OpBuilder& op) {
  return op.attr<Axis>("axis", 0, "axis that the windows run along")
      .required()
      .attr<int>("size", 1, "elements of a window")
      .required()
      .attr<int>("step", 1, "from the start of one window to that of the next");
}

// The windows beside each other along the axis, added where they came from.
Value add_windows(ExpandContext& e) {
  static constinit OpRef add("index_select_grad", "axis");
  Value dy = e.in(0), x = e.in(1);
  int64_t rank = x.rank(), axis = wrap_axis(e.get<Axis>("axis"), x.rank());
  int64_t size = e.get<int>("size"), step = e.get<int>("step"), count = known(dy.dim(static_cast<uint32_t>(axis)));
  pg_ints order{}, joined{};
  order.count = rank + 1;
  joined.count = rank;
  for (int64_t i = 0, to = 0; i < rank; i++) {
    order.value[to++] = i;
    if (i == axis) order.value[to++] = rank;
    joined.value[i] = i == axis ? count * size : dy.dim(static_cast<uint32_t>(i));
  }
  Value index = reshape(unsqueeze(positions(x, count, step), 1) + positions(x, size), make_ints({count * size}));
  return Call(e.builder(), add).input(reshape(permute(dy, order), joined)).input(index).input(x).set(0, axis).emit();
}

const bool declared = [] {
  window_attrs(declare_op("unfold").category("view"))
      .doc(
          "Windows of `size` elements along `axis`, one every `step`, without a copy: y[..., w, ..., k] = "
          "x[..., w * step + k, ...].")
      .input("x", kStored, "[..., n, ...]")
      .output("y", "[..., (n - size) / step + 1, ..., size]")
      .traits(PG_OP_VIEW)
      .shape([](ShapeContext& c) {
        uint32_t axis;
        Shape shape = windows(c, 0, &axis);
        const pg_tensor& x = c.in(0);
        OutputMeta out = c.out(0).set(c.dtype(0), shape);
        if (x.stride == nullptr) return;
        int64_t stride[PG_MAX_RANK];
        std::copy_n(x.stride, x.rank, stride);
        // A step beyond the axis is never taken.
        stride[axis] = x.stride[axis] * std::min(c.get<int>("step"), std::max<int64_t>(c.dim(0, axis).value, 1));
        stride[x.rank] = x.stride[axis];
        out.view(stride, 0);
      })
      .grad([](GradContext& g) {
        static constinit OpRef op("unfold_grad");
        g.din(0) = g.call(op, g.dout(0), g.in(0));
      });

  window_attrs(declare_op("unfold_grad").category("view"))
      .doc("Zeros in the shape of x, plus each element of dy where `unfold` showed it from.")
      .input("dy", kReal, "shape of the windows")
      .input("x", kReal, "[...]", PG_INPUT_META)
      .output("dx", "shape of x")
      .shape([](ShapeContext& c) {
        uint32_t axis;
        Shape want = windows(c, 1, &axis);
        c.check_rank(0, want.rank, want.rank);
        for (uint32_t i = 0; i < want.rank; i++) c.check_dim(0, i, want[i], "the shape of the windows");
        c.out(0).set(c.dtype(0), c.shape(1));
      })
      .grad([](GradContext& g) {
        static constinit OpRef op("unfold");
        g.din(0) = g.call(op, g.dout(0));
      })
      .decompose([](ExpandContext& e) { e.out(0) = add_windows(e); });
  return true;
}();

}  // namespace
}  // namespace pg::schema_unfold
