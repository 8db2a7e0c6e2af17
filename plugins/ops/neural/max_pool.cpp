// SPDX-License-Identifier: Apache-2.0
// max_pool1d, 2d, 3d and adaptive_max_pool1d, 2d, 3d, and the two linear operators for each number of axes that their
// derivatives are made of.
#include "window.hpp"

namespace pg::schema_max_pool {
namespace {

template <uint32_t axes>
struct Text;
template <>
struct Text<1> {
  static constexpr OpName pool{"max_pool1d"};
  static constexpr OpName grad{"max_pool1d_grad"};
  static constexpr OpName gather{"max_pool1d_gather"};
  static constexpr const char *adaptive = "adaptive_max_pool1d", *x = "[N, C, L]", *y = "[N, C, L']",
                              *indices = "int64 [N, C, L']: where along L each maximum stands";
};
template <>
struct Text<2> {
  static constexpr OpName pool{"max_pool2d"};
  static constexpr OpName grad{"max_pool2d_grad"};
  static constexpr OpName gather{"max_pool2d_gather"};
  static constexpr const char *adaptive = "adaptive_max_pool2d", *x = "[N, C, H, W]", *y = "[N, C, H', W']",
                              *indices = "int64 [N, C, H', W']: where in its plane each maximum stands, h * W + w";
};
template <>
struct Text<3> {
  static constexpr OpName pool{"max_pool3d"};
  static constexpr OpName grad{"max_pool3d_grad"};
  static constexpr OpName gather{"max_pool3d_gather"};
  static constexpr const char *adaptive = "adaptive_max_pool3d", *x = "[N, C, D, H, W]", *y = "[N, C, D', H', W']",
                              *indices =
                                  "int64 [N, C, D', H', W']: where in its block each maximum stands, (d * H + "
                                  "h) * W + w";
};

template <uint32_t axes>
Value scatter(Value dy, Value indices, Value x) {
  return apply<Text<axes>::grad>(dy, indices, x);
}
template <uint32_t axes>
Value take(Value x, Value indices) {
  return apply<Text<axes>::gather>(x, indices);
}

void check_planes(ShapeContext& c, uint32_t axes, uint32_t x, uint32_t indices) {
  c.check_rank(x, axes + 2, axes + 2);
  c.check_rank(indices, axes + 2, axes + 2);
  c.need(c.dtype(indices) == PG_I64, "%s is %s; expected int64", c.name(indices), dtype_name(c.dtype(indices)));
  for (uint32_t i = 0; i < 2; i++) c.check_dim(indices, i, c.dim(x, i), "as in x");
}

void set_outputs(ShapeContext& c, const Shape& shape) {
  c.out(0).set(c.dtype(0), shape);
  c.out(1).set(PG_I64, shape);
}

// A place in a plane of one row is the place in the row.
void pool_with_image(ExpandContext& e) {
  static constinit OpRef op("max_pool2d", "kernel", "stride", "padding", "dilation", "ceil_mode");
  Value results[2];
  Call(e.builder(), op)
      .input(with_row(e.in(0)))
      .set(0, list_with_row(e, "kernel", 1))
      .set(1, list_with_row(e, "stride", 1))
      .set(2, list_with_row(e, "padding", 0))
      .set(3, list_with_row(e, "dilation", 1))
      .set(4, e.get<bool>("ceil_mode"))
      .emit(results, e.output_count());
  for (uint32_t i = 0; i < e.output_count(); i++) e.out(i) = without_row(results[i]);
}

template <uint32_t axes>
void declare_pool() {
  using T = Text<axes>;
  OpBuilder& op = pooling_attrs(declare_op(T::pool.text).category("neural"), axes);
  op.attr<Ints>("dilation", repeated(axes, 1), "distance of the window's elements along each axis")
      .pair()
      .attr<bool>("ceil_mode", false, "round the result's size up instead of down")
      .doc(
          "Largest element of each window; a NaN counts as largest, of equal ones the first in row-major order. "
          "Padding "
          "counts as minus infinity.")
      .input("x", kFloating, T::x)
      .output("y", T::y)
      .hidden("indices", T::indices)
      .shape([](ShapeContext& c) {
        c.check_rank(0, axes + 2, axes + 2);
        Pooling p = check_pooling(c, axes);
        pg_ints dilation = check_list(c, "dilation", axes, 1);
        Shape shape{c.dim(0, 0), c.dim(0, 1)};
        for (uint32_t i = 0; i < axes; i++)
          shape.push(window_count(c, 0, i + 2, p.kernel.value[i], p.stride.value[i], p.padding.value[i],
                                  p.padding.value[i], dilation.value[i], c.get<bool>("ceil_mode")));
        set_outputs(c, shape);
      })
      .saves("indices")
      .grad([](GradContext& g) { g.din(0) = scatter<axes>(g.dout(0), g.out(1), g.in(0)); });
  if constexpr (axes == 1) op.decompose(pool_with_image);
}

template <uint32_t axes>
void declare_adaptive() {
  using T = Text<axes>;
  declare_op(T::adaptive)
      .category("neural")
      .template attr<Ints>("size", repeated(axes, 0), "size of the result along each axis; -1 keeps an axis")
      .required()
      .pair()
      .doc(
          "Largest element of each of `size` windows an axis: output o of n is over floor(o s / n) up to "
          "ceil((o + 1) s / n) of s elements. A NaN counts as largest, of equal ones the first.")
      .input("x", kFloating, T::x)
      .output("y", T::y)
      .hidden("indices", T::indices)
      .shape([](ShapeContext& c) {
        c.check_rank(0, axes + 2, axes + 2);
        set_outputs(c, adaptive_shape(c, axes));
      })
      .saves("indices")
      .grad([](GradContext& g) { g.din(0) = scatter<axes>(g.dout(0), g.out(1), g.in(0)); });
}

template <uint32_t axes>
void declare_parts() {
  using T = Text<axes>;
  OpBuilder& grad = declare_op(T::grad.text);
  grad.category("neural")
      .doc("Zeros in the shape of x, plus each dy at its index; where windows overlap they add up.")
      .input("dy", kFloating, T::y)
      .input("indices", kInteger, T::indices)
      .input("x", kFloating, T::x, PG_INPUT_META)
      .output("dx", "shape of x")
      .shape([](ShapeContext& c) {
        check_planes(c, axes, 2, 1);
        c.check_same_shape(0, 1);
        c.out(0).set(c.dtype(0), c.shape(2));
      })
      .saves("indices")
      .grad([](GradContext& g) { g.din(0) = take<axes>(g.dout(0), g.in(1)); });

  OpBuilder& gather = declare_op(T::gather.text);
  gather.category("neural")
      .doc("The elements of x at the indices, which max_pool gives.")
      .input("x", kFloating, T::x)
      .input("indices", kInteger, T::indices)
      .output("y", "shape of indices")
      .shape([](ShapeContext& c) {
        check_planes(c, axes, 0, 1);
        c.out(0).set(c.dtype(0), c.shape(1));
      })
      .saves("indices")
      .grad([](GradContext& g) { g.din(0) = scatter<axes>(g.dout(0), g.in(1), g.in(0)); });

  if constexpr (axes == 1) {
    grad.decompose([](ExpandContext& e) {
      e.out(0) = without_row(scatter<2>(with_row(e.in(0)), with_row(e.in(1)), with_row(zeros_like(e.in(2)))));
    });
    gather.decompose([](ExpandContext& e) { e.out(0) = without_row(take<2>(with_row(e.in(0)), with_row(e.in(1)))); });
  }
}

template <uint32_t axes>
void declare() {
  declare_pool<axes>();
  declare_adaptive<axes>();
  declare_parts<axes>();
}

const bool declared = [] {
  declare<1>();
  declare<2>();
  declare<3>();
  return true;
}();

}  // namespace
}  // namespace pg::schema_max_pool
