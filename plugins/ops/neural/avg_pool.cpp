// SPDX-License-Identifier: Apache-2.0
// avg_pool1d, 2d, 3d and their gradients; both are linear.
#include "window.hpp"

namespace pg::schema_avg_pool {
namespace {

template <uint32_t axes>
struct Text;
template <>
struct Text<1> {
  static constexpr const char *pool = "avg_pool1d", *grad = "avg_pool1d_grad", *x = "[N, C, L]", *y = "[N, C, L']";
};
template <>
struct Text<2> {
  static constexpr const char *pool = "avg_pool2d", *grad = "avg_pool2d_grad", *x = "[N, C, H, W]",
                              *y = "[N, C, H', W']";
};
template <>
struct Text<3> {
  static constexpr const char *pool = "avg_pool3d", *grad = "avg_pool3d_grad", *x = "[N, C, D, H, W]",
                              *y = "[N, C, D', H', W']";
};

OpBuilder& average_attrs(OpBuilder& op, uint32_t axes) {
  return pooling_attrs(op, axes)
      .attr<bool>("ceil_mode", false, "round the result's size up instead of down")
      .attr<bool>("count_include_pad", true, "padding counts as zeros in the mean")
      .attr<int>("divisor_override", 0, "what each window's sum is divided by instead of its size; 0: its size");
}

Shape average_shape(const ShapeContext& c, uint32_t axes, uint32_t x) {
  c.check_rank(x, axes + 2, axes + 2);
  Pooling p = check_pooling(c, axes);
  Shape shape{c.dim(x, 0), c.dim(x, 1)};
  for (uint32_t i = 0; i < axes; i++)
    shape.push(window_count(c, x, i + 2, p.kernel.value[i], p.stride.value[i], p.padding.value[i], p.padding.value[i],
                            1, c.get<bool>("ceil_mode")));
  return shape;
}

// The operator on images that does the work of one on sequences.
Value with_image(const ValueContext& c, const OpRef& op, Value x, Value like) {
  Call call(c.builder(), op);
  call.input(x);
  if (like) call.input(like);
  return call.set(0, list_with_row(c, "kernel", 1))
      .set(1, list_with_row(c, "stride", 1))
      .set(2, list_with_row(c, "padding", 0))
      .set(3, c.get<bool>("ceil_mode"))
      .set(4, c.get<bool>("count_include_pad"))
      .set(5, c.get<int>("divisor_override"))
      .emit();
}

template <uint32_t axes>
void declare() {
  using T = Text<axes>;
  OpBuilder& pool = average_attrs(declare_op(T::pool).category("neural"), axes);
  pool.doc("Mean of each window.")
      .input("x", kFloating, T::x)
      .output("y", T::y)
      .shape([](ShapeContext& c) { c.out(0).set(c.dtype(0), average_shape(c, axes, 0)); })
      .grad([](GradContext& g) {
        static constinit OpRef op(T::grad);
        g.din(0) = g.call(op, g.dout(0), g.in(0));
      });

  OpBuilder& grad = average_attrs(declare_op(T::grad).category("neural"), axes);
  grad.doc("Each dy spread evenly over its window, in the shape of x.")
      .input("dy", kFloating, T::y)
      .input("x", kFloating, T::x, PG_INPUT_META)
      .output("dx", "shape of x")
      .shape([](ShapeContext& c) {
        Shape want = average_shape(c, axes, 1);
        c.check_rank(0, axes + 2, axes + 2);
        for (uint32_t i = 0; i < want.rank; i++) c.check_dim(0, i, want[i], "the shape of the pooled x");
        c.out(0).set(c.dtype(0), c.shape(1));
      })
      .grad([](GradContext& g) {
        static constinit OpRef op(T::pool);
        g.din(0) = g.call(op, g.dout(0));
      });

  if constexpr (axes == 1) {
    pool.decompose([](ExpandContext& e) {
      static constinit OpRef op("avg_pool2d", "kernel", "stride", "padding", "ceil_mode", "count_include_pad",
                                "divisor_override");
      e.out(0) = without_row(with_image(e, op, with_row(e.in(0)), Value{}));
    });
    grad.decompose([](ExpandContext& e) {
      static constinit OpRef op("avg_pool2d_grad", "kernel", "stride", "padding", "ceil_mode", "count_include_pad",
                                "divisor_override");
      e.out(0) = without_row(with_image(e, op, with_row(e.in(0)), with_row(zeros_like(e.in(1)))));
    });
  }
}

const bool declared = [] {
  declare<1>();
  declare<2>();
  declare<3>();
  return true;
}();

}  // namespace
}  // namespace pg::schema_avg_pool
