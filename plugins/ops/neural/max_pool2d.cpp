// SPDX-License-Identifier: Apache-2.0
// max_pool2d, and the two linear operators that its derivatives are made of.
#include "window.hpp"

namespace pg {
namespace {

Value scatter(Value dy, Value indices, Value x) { return apply<"max_pool2d_grad">(dy, indices, x); }
Value take(Value x, Value indices) { return apply<"max_pool2d_gather">(x, indices); }

void check_planes(ShapeContext& c, uint32_t x, uint32_t indices) {
  c.check_rank(x, 4, 4);
  c.check_rank(indices, 4, 4);
  c.need(c.dtype(indices) == PG_I64, "%s is %s; expected int64", c.name(indices), dtype_name(c.dtype(indices)));
  for (uint32_t i = 0; i < 2; i++) c.check_dim(indices, i, c.dim(x, i), "as in x");
}

const bool declared = [] {
  pooling_attrs(declare_op("max_pool2d").category("neural"))
      .attr<Ints>("dilation", make_ints({1, 1}), "distance of the window's elements down and right")
      .pair()
      .attr<bool>("ceil_mode", false, "round the result's size up instead of down")
      .doc(
          "Largest element of each window; a NaN counts as largest, of equal ones the first in row-major order. "
          "Padding "
          "counts as minus infinity.")
      .input("x", kFloating, "[N, C, H, W]")
      .output("y", "[N, C, H', W']")
      .hidden("indices", "int64 [N, C, H', W']: where in its plane each maximum stands, h * W + w")
      .shape([](ShapeContext& c) {
        c.check_rank(0, 4, 4);
        Pooling p = check_pooling(c);
        pg_ints dilation = check_pair(c, "dilation", 1);
        Shape shape{c.dim(0, 0), c.dim(0, 1)};
        for (uint32_t i = 0; i < 2; i++)
          shape.push(window_count(c, 0, i + 2, p.kernel.value[i], p.stride.value[i], p.padding.value[i],
                                  dilation.value[i], c.get<bool>("ceil_mode")));
        c.out(0).set(c.dtype(0), shape);
        c.out(1).set(PG_I64, shape);
      })
      .saves("indices")
      .grad([](GradContext& g) { g.din(0) = scatter(g.dout(0), g.out(1), g.in(0)); });

  declare_op("max_pool2d_grad")
      .category("neural")
      .doc("Zeros in the shape of x, plus each dy at its index; where windows overlap they add up.")
      .input("dy", kFloating, "[N, C, H', W']")
      .input("indices", kInteger, "int64 [N, C, H', W']")
      .input("x", kFloating, "[N, C, H, W]", PG_INPUT_META)
      .output("dx", "shape of x")
      .shape([](ShapeContext& c) {
        check_planes(c, 2, 1);
        c.check_same_shape(0, 1);
        c.out(0).set(c.dtype(0), c.shape(2));
      })
      .saves("indices")
      .grad([](GradContext& g) { g.din(0) = take(g.dout(0), g.in(1)); });

  declare_op("max_pool2d_gather")
      .category("neural")
      .doc("The elements of each plane of x at the indices.")
      .input("x", kFloating, "[N, C, H, W]")
      .input("indices", kInteger, "int64 [N, C, H', W']: h * W + w")
      .output("y", "shape of indices")
      .shape([](ShapeContext& c) {
        check_planes(c, 0, 1);
        c.out(0).set(c.dtype(0), c.shape(1));
      })
      .saves("indices")
      .grad([](GradContext& g) { g.din(0) = scatter(g.dout(0), g.in(1), g.in(0)); });
  return true;
}();

}  // namespace
}  // namespace pg
