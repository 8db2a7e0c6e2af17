// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "perigee/layer.hpp"

namespace {

struct Conv2d {
  int64_t inputs = 0, out = 0;
  pg_ints kernel{}, stride = pg::make_ints({1, 1}), padding = pg::make_ints({0, 0}), dilation = pg::make_ints({1, 1});
  int64_t groups = 1;
  pg::Bool bias = true;

  void parameters(pg::Params& p) {
    p.positive(out, "out");
    p.infer(inputs, "inputs", -3);
    check(p);
    auto fan_in = static_cast<double>(inputs / groups) * static_cast<double>(kernel.value[0] * kernel.value[1]);
    double bound = 1 / std::sqrt(fan_in);  // PyTorch's: kaiming uniform with a = sqrt(5)
    p.uniform(0, pg::make_ints({out, inputs / groups, kernel.value[0], kernel.value[1]}), bound);
    if (bias) p.uniform(1, pg::make_ints({out}), bound);
  }
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op("conv2d", "stride", "padding", "dilation", "groups");
    return c.call(op)
        .input(c.input())
        .input(c.param(0))
        .input(c.param(1))
        .set(0, stride)
        .set(1, padding)
        .set(2, dilation)
        .set(3, groups)
        .emit();
  }

 private:
  void check(const pg::Params& p) const {
    for (const pg_ints* list : {&kernel, &stride, &padding, &dilation}) {
      if (list->count != 2) pg::fail_argument("kernel, stride, padding and dilation take one number or two");
    }
    p.positive(kernel, "kernel");
    p.positive(stride, "stride");
    p.positive(dilation, "dilation");
    p.not_negative(padding, "padding");
    p.positive(groups, "groups");
    if (inputs % groups != 0 || out % groups != 0) {
      pg::fail_argument(pg::format("inputs %lld and out %lld must be multiples of groups %lld",
                                   static_cast<long long>(inputs), static_cast<long long>(out),
                                   static_cast<long long>(groups)));
    }
  }
};

PG_LAYER(Conv2d, "Conv2d", "Cross-correlation of images [N, inputs, H, W] with weight [out, inputs / groups, kh, kw].")
    .inferred(&Conv2d::inputs, "inputs", "channels of the input")
    .attr(&Conv2d::out, "out", "channels of the output", PG_ATTR_REQUIRED)
    .pair(&Conv2d::kernel, "kernel", "height and width of the window", PG_ATTR_REQUIRED)
    .pair(&Conv2d::stride, "stride", "steps of the window, in pixels")
    .pair(&Conv2d::padding, "padding", "zeros added on each side, in pixels")
    .pair(&Conv2d::dilation, "dilation", "distance between the window's taps, in pixels")
    .attr(&Conv2d::groups, "groups", "channels are split into this many independent parts")
    .attr(&Conv2d::bias, "bias", "whether to add a bias [out]")
    .params({"weight", "bias"});

}  // namespace
