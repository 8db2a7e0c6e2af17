// SPDX-License-Identifier: Apache-2.0
// Pooling over windows along one to three axes. An empty stride means the kernel's size.
#include "window.hpp"

namespace {

void check_windows(uint32_t axes, const pg_ints& kernel, const pg_ints& stride, const pg_ints& padding) {
  pg::check_axes(kernel, "kernel", axes), pg::check_axes(padding, "padding", axes);
  pg::check_axes(stride, "stride", axes, true);
  pg::Params::positive(kernel, "kernel");
  pg::Params::positive(stride, "stride");
  pg::Params::not_negative(padding, "padding");
}

template <uint32_t axes>
constexpr const char* named(const char* one, const char* two, const char* three) {
  return axes == 1 ? one : axes == 2 ? two : three;
}

template <uint32_t axes>
struct MaxPool {
  pg_ints kernel = pg::repeated(axes, 0), stride{}, padding = pg::repeated(axes, 0), dilation = pg::repeated(axes, 1);
  pg::Bool ceil_mode = false;

  void parameters(pg::Params& p) {
    check_windows(axes, kernel, stride, padding);
    pg::check_axes(dilation, "dilation", axes);
    p.positive(dilation, "dilation");
  }
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op(named<axes>("max_pool1d", "max_pool2d", "max_pool3d"), "kernel", "stride", "padding",
                                  "dilation", "ceil_mode");
    pg::check_input(c, axes);
    pg::Call call = c.call(op);
    call.input(c.input()).set(0, kernel).set(1, stride).set(2, padding).set(3, dilation).set(4, bool(ceil_mode));
    return call.emit();
  }
};

template <uint32_t axes>
struct AvgPool {
  pg_ints kernel = pg::repeated(axes, 0), stride{}, padding = pg::repeated(axes, 0);
  pg::Bool ceil_mode = false, count_include_pad = true;
  int64_t divisor_override = 0;

  void parameters(pg::Params&) { check_windows(axes, kernel, stride, padding); }
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op(named<axes>("avg_pool1d", "avg_pool2d", "avg_pool3d"), "kernel", "stride", "padding",
                                  "ceil_mode", "count_include_pad", "divisor_override");
    pg::check_input(c, axes);
    pg::Call call = c.call(op);
    call.input(c.input())
        .set(0, kernel)
        .set(1, stride)
        .set(2, padding)
        .set(3, bool(ceil_mode))
        .set(4, bool(count_include_pad))
        .set(5, divisor_override);
    return call.emit();
  }
};

template <uint32_t axes, bool largest>
struct AdaptivePool {
  pg_ints size = pg::repeated(axes, 0);

  void parameters(pg::Params&) {
    pg::check_axes(size, "size", axes);
    for (uint32_t i = 0; i < axes; i++)
      if (size.value[i] != -1) pg::Params::positive(size.value[i], "size");
  }
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op(
        largest ? named<axes>("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
                : named<axes>("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"),
        "size");
    pg::check_input(c, axes);
    return c.call(op).input(c.input()).set(0, size).emit();
  }
};

template <uint32_t axes>
void add_pools(const char* max, const char* avg, const char* adaptive_max, const char* adaptive_avg) {
  using Max = MaxPool<axes>;
  pg::add_layer<Max>(max, named<axes>("The largest value of each window: [N, C, L] to [N, C, L'].",
                                      "The largest value of each window: [N, C, H, W] to [N, C, H', W'].",
                                      "The largest value of each window: [N, C, D, H, W] to [N, C, D', H', W']."))
      .pair(&Max::kernel, "kernel", "size of the window along each axis", PG_ATTR_REQUIRED)
      .pair(&Max::stride, "stride", "steps of the window; the kernel's size if not given")
      .pair(&Max::padding, "padding", "elements added on both sides, never the largest")
      .pair(&Max::dilation, "dilation", "distance between the window's elements")
      .attr(&Max::ceil_mode, "ceil_mode", "whether windows that stick out at the end count");
  using Avg = AvgPool<axes>;
  pg::add_layer<Avg>(avg, named<axes>("The mean of each window: [N, C, L] to [N, C, L'].",
                                      "The mean of each window: [N, C, H, W] to [N, C, H', W'].",
                                      "The mean of each window: [N, C, D, H, W] to [N, C, D', H', W']."))
      .pair(&Avg::kernel, "kernel", "size of the window along each axis", PG_ATTR_REQUIRED)
      .pair(&Avg::stride, "stride", "steps of the window; the kernel's size if not given")
      .pair(&Avg::padding, "padding", "zeros added on both sides")
      .attr(&Avg::ceil_mode, "ceil_mode", "whether windows that stick out at the end count")
      .attr(&Avg::count_include_pad, "count_include_pad", "whether the padding's zeros count in the mean")
      .attr(&Avg::divisor_override, "divisor_override", "what sums are divided by instead of the window's size");
  constexpr const char* size = "size of the result along each axis; -1 keeps an axis";
  using AdaptiveMax = AdaptivePool<axes, true>;
  pg::add_layer<AdaptiveMax>(adaptive_max, "The largest value of each of `size` windows that share each axis evenly.")
      .pair(&AdaptiveMax::size, "size", size, PG_ATTR_REQUIRED);
  using AdaptiveAvg = AdaptivePool<axes, false>;
  pg::add_layer<AdaptiveAvg>(adaptive_avg,
                             "The mean of each of `size` windows that share each axis evenly; size 1 is the mean over "
                             "the whole.")
      .pair(&AdaptiveAvg::size, "size", size, PG_ATTR_REQUIRED);
}

[[maybe_unused]] const int registered = [] {
  add_pools<1>("MaxPool1d", "AvgPool1d", "AdaptiveMaxPool1d", "AdaptiveAvgPool1d");
  add_pools<2>("MaxPool2d", "AvgPool2d", "AdaptiveMaxPool2d", "AdaptiveAvgPool2d");
  add_pools<3>("MaxPool3d", "AvgPool3d", "AdaptiveMaxPool3d", "AdaptiveAvgPool3d");
  return 0;
}();

}  // namespace
