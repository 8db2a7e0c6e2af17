// SPDX-License-Identifier: Apache-2.0
// avg_pool2d and its gradient; both are linear.
#include "window.hpp"

namespace pg {
namespace {

OpBuilder& average_attrs(OpBuilder& op) {
  return pooling_attrs(op)
      .attr<bool>("ceil_mode", false, "round the result's size up instead of down")
      .attr<bool>("count_include_pad", true, "padding counts as zeros in the mean");
}

Shape average_shape(const ShapeContext& c, uint32_t x) {
  c.check_rank(x, 4, 4);
  Pooling p = check_pooling(c);
  Shape shape{c.dim(x, 0), c.dim(x, 1)};
  for (uint32_t i = 0; i < 2; i++)
    shape.push(window_count(c, x, i + 2, p.kernel.value[i], p.stride.value[i], p.padding.value[i], 1,
                            c.get<bool>("ceil_mode")));
  return shape;
}

const bool declared = [] {
  average_attrs(declare_op("avg_pool2d").category("neural"))
      .doc("Mean of each window.")
      .input("x", kFloating, "[N, C, H, W]")
      .output("y", "[N, C, H', W']")
      .shape([](ShapeContext& c) { c.out(0).set(c.dtype(0), average_shape(c, 0)); })
      .grad([](GradContext& g) {
        static constinit OpRef op("avg_pool2d_grad");
        g.din(0) = g.call(op, g.dout(0), g.in(0));
      });

  average_attrs(declare_op("avg_pool2d_grad").category("neural"))
      .doc("Each dy spread evenly over its window, in the shape of x.")
      .input("dy", kFloating, "[N, C, H', W']")
      .input("x", kFloating, "[N, C, H, W]", PG_INPUT_META)
      .output("dx", "shape of x")
      .shape([](ShapeContext& c) {
        Shape want = average_shape(c, 1);
        c.check_rank(0, 4, 4);
        for (uint32_t i = 0; i < 4; i++) c.check_dim(0, i, want[i], "the shape of the pooled x");
        c.out(0).set(c.dtype(0), c.shape(1));
      })
      .grad([](GradContext& g) {
        static constinit OpRef op("avg_pool2d");
        g.din(0) = g.call(op, g.dout(0));
      });
  return true;
}();

}  // namespace
}  // namespace pg
