// SPDX-License-Identifier: Apache-2.0
// Pooling over windows of an image. An empty stride means the kernel's size.
#include "perigee/layer.hpp"

namespace {

void check_windows(const pg_ints& kernel, const pg_ints& stride, const pg_ints& padding) {
  if (kernel.count != 2 || (stride.count != 2 && stride.count != 0) || padding.count != 2) {
    pg::fail_argument("kernel, stride and padding take one number or two");
  }
  pg::Params::positive(kernel, "kernel");
  pg::Params::positive(stride, "stride");
  pg::Params::not_negative(padding, "padding");
}

struct MaxPool2d {
  pg_ints kernel{}, stride{}, padding = pg::make_ints({0, 0}), dilation = pg::make_ints({1, 1});
  pg::Bool ceil_mode = false;

  void parameters(pg::Params& p) {
    check_windows(kernel, stride, padding);
    if (dilation.count != 2) pg::fail_argument("dilation takes one number or two");
    p.positive(dilation, "dilation");
  }
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op("max_pool2d", "kernel", "stride", "padding", "dilation", "ceil_mode");
    pg::Call call = c.call(op);
    call.input(c.input()).set(0, kernel).set(1, stride).set(2, padding).set(3, dilation).set(4, bool(ceil_mode));
    return call.emit();
  }
};

PG_LAYER(MaxPool2d, "MaxPool2d", "The largest value of each window: [N, C, H, W] to [N, C, H', W'].")
    .pair(&MaxPool2d::kernel, "kernel", "height and width of the window", PG_ATTR_REQUIRED)
    .pair(&MaxPool2d::stride, "stride", "steps of the window; the kernel's size if not given")
    .pair(&MaxPool2d::padding, "padding", "pixels added on each side, never the largest")
    .pair(&MaxPool2d::dilation, "dilation", "distance between the window's taps, in pixels")
    .attr(&MaxPool2d::ceil_mode, "ceil_mode", "whether windows that stick out at the end count");

struct AvgPool2d {
  pg_ints kernel{}, stride{}, padding = pg::make_ints({0, 0});
  pg::Bool ceil_mode = false, count_include_pad = true;

  void parameters(pg::Params&) { check_windows(kernel, stride, padding); }
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op("avg_pool2d", "kernel", "stride", "padding", "ceil_mode", "count_include_pad");
    pg::Call call = c.call(op);
    call.input(c.input())
        .set(0, kernel)
        .set(1, stride)
        .set(2, padding)
        .set(3, bool(ceil_mode))
        .set(4, bool(count_include_pad));
    return call.emit();
  }
};

PG_LAYER(AvgPool2d, "AvgPool2d", "The mean of each window: [N, C, H, W] to [N, C, H', W'].")
    .pair(&AvgPool2d::kernel, "kernel", "height and width of the window", PG_ATTR_REQUIRED)
    .pair(&AvgPool2d::stride, "stride", "steps of the window; the kernel's size if not given")
    .pair(&AvgPool2d::padding, "padding", "zeros added on each side, in pixels")
    .attr(&AvgPool2d::ceil_mode, "ceil_mode", "whether windows that stick out at the end count")
    .attr(&AvgPool2d::count_include_pad, "count_include_pad", "whether the padding's zeros count in the mean");

}  // namespace
