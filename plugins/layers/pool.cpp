// SPDX-License-Identifier: Apache-2.0
// Pooling over windows along one to three axes, of a batch or of one example alone. An empty stride means the kernel's
// size.
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

// The largest values and, if they are asked for, where they stand.
using Results = std::array<pg::Value, 2>;
Results pooled(const pg::Batch& batch, pg::Call& call, bool indices) {
  Results y{};
  if (indices)
    call.emit(y.data(), 2);
  else
    y[0] = call.emit();
  return {batch.result(y[0]), batch.result(y[1])};
}

template <uint32_t axes>
struct MaxPool {
  pg_ints kernel = pg::repeated(axes, 0), stride{}, padding = pg::repeated(axes, 0), dilation = pg::repeated(axes, 1);
  pg::Bool ceil_mode = false, return_indices = false;

  void parameters(pg::Params& p) {
    check_windows(axes, kernel, stride, padding);
    pg::check_axes(dilation, "dilation", axes);
    p.positive(dilation, "dilation");
  }
  Results build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op(named<axes>("max_pool1d", "max_pool2d", "max_pool3d"), "kernel", "stride", "padding",
                                  "dilation", "ceil_mode");
    pg::Batch batch(c, axes);
    pg::Call call = c.call(op);
    call.input(batch.x).set(0, kernel).set(1, stride).set(2, padding).set(3, dilation).set(4, bool(ceil_mode));
    return pooled(batch, call, return_indices);
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
    pg::Batch batch(c, axes);
    pg::Call call = c.call(op);
    call.input(batch.x)
        .set(0, kernel)
        .set(1, stride)
        .set(2, padding)
        .set(3, bool(ceil_mode))
        .set(4, bool(count_include_pad))
        .set(5, divisor_override);
    return batch.result(call.emit());
  }
};

void check_sizes(uint32_t axes, const pg_ints& size) {
  pg::check_axes(size, "size", axes);
  for (uint32_t i = 0; i < axes; i++)
    if (size.value[i] != -1) pg::Params::positive(size.value[i], "size");
}

template <uint32_t axes>
struct AdaptiveMaxPool {
  pg_ints size = pg::repeated(axes, 0);
  pg::Bool return_indices = false;

  void parameters(pg::Params&) { check_sizes(axes, size); }
  Results build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op(named<axes>("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"),
                                  "size");
    pg::Batch batch(c, axes);
    pg::Call call = c.call(op);
    return pooled(batch, call.input(batch.x).set(0, size), return_indices);
  }
};

template <uint32_t axes>
struct AdaptiveAvgPool {
  pg_ints size = pg::repeated(axes, 0);

  void parameters(pg::Params&) { check_sizes(axes, size); }
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op(named<axes>("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"),
                                  "size");
    pg::Batch batch(c, axes);
    return batch.result(c.call(op).input(batch.x).set(0, size).emit());
  }
};

#define PG_POOL_SIZE(text) " Each axis becomes " text " long, rounded up with ceil_mode."
#define PG_MAX_POOL_DOC(from, to)                     \
  "The largest value of each window: " from " to " to \
  "; N may be missing." PG_POOL_SIZE("floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1")
#define PG_AVG_POOL_DOC(from, to)            \
  "The mean of each window: " from " to " to \
  "; N may be missing." PG_POOL_SIZE("floor((size + 2 padding - kernel) / stride) + 1")
#define PG_ADAPTIVE_SIZE                                                                                \
  " [N, C, ...] to [N, C, size...], N may be missing. Window i of n covers an axis of s elements from " \
  "floor(i s / n) to ceil((i + 1) s / n), i from 0, the end excluded."

template <uint32_t axes>
void add_pools(const char* max, const char* avg, const char* adaptive_max, const char* adaptive_avg) {
  using Max = MaxPool<axes>;
  constexpr const char* indices = "whether to give, behind the values, where in its plane each stands, from 0: int64";
  pg::add_layer<Max>(
      max, named<axes>(PG_MAX_POOL_DOC("[N, C, L]", "[N, C, L']"), PG_MAX_POOL_DOC("[N, C, H, W]", "[N, C, H', W']"),
                       PG_MAX_POOL_DOC("[N, C, D, H, W]", "[N, C, D', H', W']")))
      .pair(&Max::kernel, "kernel", "size of the window along each axis", PG_ATTR_REQUIRED)
      .pair(&Max::stride, "stride", "steps of the window; the kernel's size if not given")
      .pair(&Max::padding, "padding", "elements added on both sides, never the largest")
      .pair(&Max::dilation, "dilation", "distance between the window's elements")
      .attr(&Max::ceil_mode, "ceil_mode", "whether windows that stick out at the end count")
      .attr(&Max::return_indices, "return_indices", indices);
  using Avg = AvgPool<axes>;
  pg::add_layer<Avg>(
      avg, named<axes>(PG_AVG_POOL_DOC("[N, C, L]", "[N, C, L']"), PG_AVG_POOL_DOC("[N, C, H, W]", "[N, C, H', W']"),
                       PG_AVG_POOL_DOC("[N, C, D, H, W]", "[N, C, D', H', W']")))
      .pair(&Avg::kernel, "kernel", "size of the window along each axis", PG_ATTR_REQUIRED)
      .pair(&Avg::stride, "stride", "steps of the window; the kernel's size if not given")
      .pair(&Avg::padding, "padding", "zeros added on both sides")
      .attr(&Avg::ceil_mode, "ceil_mode", "whether windows that stick out at the end count")
      .attr(&Avg::count_include_pad, "count_include_pad", "whether the padding's zeros count in the mean")
      .attr(&Avg::divisor_override, "divisor_override",
            "what sums are divided by instead of the window's size; 0: that size");
  constexpr const char* size = "size of the result along each axis; -1 keeps an axis";
  using AdaptiveMax = AdaptiveMaxPool<axes>;
  pg::add_layer<AdaptiveMax>(
      adaptive_max, "The largest value of each of `size` windows that share each axis evenly." PG_ADAPTIVE_SIZE)
      .pair(&AdaptiveMax::size, "size", size, PG_ATTR_REQUIRED)
      .attr(&AdaptiveMax::return_indices, "return_indices", indices);
  using AdaptiveAvg = AdaptiveAvgPool<axes>;
  pg::add_layer<AdaptiveAvg>(adaptive_avg,
                             "The mean of each of `size` windows that share each axis evenly; size 1 is the mean over "
                             "the whole." PG_ADAPTIVE_SIZE)
      .pair(&AdaptiveAvg::size, "size", size, PG_ATTR_REQUIRED);
}

[[maybe_unused]] const int registered_pool = [] {
  add_pools<1>("MaxPool1d", "AvgPool1d", "AdaptiveMaxPool1d", "AdaptiveAvgPool1d");
  add_pools<2>("MaxPool2d", "AvgPool2d", "AdaptiveMaxPool2d", "AdaptiveAvgPool2d");
  add_pools<3>("MaxPool3d", "AvgPool3d", "AdaptiveMaxPool3d", "AdaptiveAvgPool3d");
  return 0;
}();
#undef PG_POOL_SIZE
#undef PG_MAX_POOL_DOC
#undef PG_AVG_POOL_DOC
#undef PG_ADAPTIVE_SIZE

}  // namespace
