// SPDX-License-Identifier: Apache-2.0
// Convolution, pooling and interpolation.
#include "../launch.hpp"
#include "perigee/kernels/reference/conv.hpp"
#include "perigee/kernels/reference/pool.hpp"
#include "perigee/kernels/reference/resample.hpp"

namespace sim {
namespace {

namespace reference = pg::reference;
using reference::Window;

// Sets the entries of an attribute's axes, the last of three; an empty list leaves them, one number stands for all.
void set_list(const Work& work, const char* name, int64_t (&entries)[3]) {
  size_t axes = static_cast<size_t>(work.in(0).rank() - 2);
  std::vector<int64_t> list = work.has_attr(name) ? work.list(name) : std::vector<int64_t>();
  if (list.size() == 1) list.assign(axes, list[0]);
  if (list.size() != axes) return;
  std::copy(list.begin(), list.end(), entries + 3 - axes);
}

Window window(const Work& work) {
  Window out;
  size_t axes = static_cast<size_t>(work.in(0).rank() - 2);
  set_list(work, "kernel", out.kernel);
  set_list(work, "kernel", out.stride);  // pooling: as far as the window is wide
  set_list(work, "stride", out.stride);
  set_list(work, "dilation", out.dilation);
  set_list(work, "padding", out.padding);
  std::vector<int64_t> padding = work.list("padding");
  for (size_t i = 0; padding.size() == 2 * axes && i < axes; i++) out.padding[3 - axes + i] = padding[2 * i];
  return out;
}

int64_t groups(const Work& work) { return work.attr<int64_t>("groups"); }

void conv(const Work& work) {
  reference::conv(work.in(0), work.in(1), work.input(2), window(work), groups(work), work.out(0));
}
void conv_grad_input(const Work& work) {
  reference::conv_grad_input(work.in(0), work.in(1), {}, window(work), groups(work), work.out(0));
}
void conv_transpose(const Work& work) {
  reference::conv_grad_input(work.in(0), work.in(1), work.input(2), window(work), groups(work), work.out(0));
}
void conv_grad_weight(const Work& work) {
  reference::conv_grad_weight(work.in(0), work.in(1), window(work), groups(work), work.out(0));
}
PG_SIM_KERNEL("conv1d", conv, kFloats);
PG_SIM_KERNEL("conv2d", conv, kFloats);
PG_SIM_KERNEL("conv3d", conv, kFloats);
PG_SIM_KERNEL("conv1d_grad_input", conv_grad_input, kFloats);
PG_SIM_KERNEL("conv2d_grad_input", conv_grad_input, kFloats);
PG_SIM_KERNEL("conv3d_grad_input", conv_grad_input, kFloats);
PG_SIM_KERNEL("conv1d_grad_weight", conv_grad_weight, kFloats);
PG_SIM_KERNEL("conv2d_grad_weight", conv_grad_weight, kFloats);
PG_SIM_KERNEL("conv3d_grad_weight", conv_grad_weight, kFloats);
PG_SIM_KERNEL("conv_transpose1d", conv_transpose, kFloats);
PG_SIM_KERNEL("conv_transpose2d", conv_transpose, kFloats);
PG_SIM_KERNEL("conv_transpose3d", conv_transpose, kFloats);

void max_pool(const Work& work) {
  Window same = window(work);
  auto at = [&](const reference::Planes&, const int64_t(&)[3]) { return same; };
  reference::max_pool(work.in(0), at, work.out(0), work.output(1));
}
void adaptive_max_pool(const Work& work) {
  reference::max_pool(work.in(0), reference::adaptive_window, work.out(0), work.output(1));
}
void max_pool_grad(const Work& work) { reference::max_pool_grad(work.op(), work.in(0), work.in(1), work.out(0)); }
void max_pool_gather(const Work& work) { reference::max_pool_gather(work.op(), work.in(0), work.in(1), work.out(0)); }

PG_SIM_SPARING_KERNEL("max_pool1d", 1u << 1, max_pool, kNumbers);
PG_SIM_SPARING_KERNEL("max_pool2d", 1u << 1, max_pool, kNumbers);
PG_SIM_SPARING_KERNEL("max_pool3d", 1u << 1, max_pool, kNumbers);
PG_SIM_SPARING_KERNEL("adaptive_max_pool1d", 1u << 1, adaptive_max_pool, kNumbers);
PG_SIM_SPARING_KERNEL("adaptive_max_pool2d", 1u << 1, adaptive_max_pool, kNumbers);
PG_SIM_SPARING_KERNEL("adaptive_max_pool3d", 1u << 1, adaptive_max_pool, kNumbers);
PG_SIM_KERNEL("max_pool1d_grad", max_pool_grad, kNumbers);
PG_SIM_KERNEL("max_pool2d_grad", max_pool_grad, kNumbers);
PG_SIM_KERNEL("max_pool3d_grad", max_pool_grad, kNumbers);
PG_SIM_KERNEL("max_pool1d_gather", max_pool_gather, kNumbers);
PG_SIM_KERNEL("max_pool2d_gather", max_pool_gather, kNumbers);
PG_SIM_KERNEL("max_pool3d_gather", max_pool_gather, kNumbers);

reference::Divisor divisor(const Work& work) {
  return {work.attr<bool>("count_include_pad"),
          work.has_attr("divisor_override") ? work.attr<int64_t>("divisor_override") : 0};
}
void avg_pool(const Work& work) { reference::avg_pool(work.in(0), window(work), divisor(work), work.out(0)); }
void avg_pool_grad(const Work& work) { reference::avg_pool_grad(work.in(0), window(work), divisor(work), work.out(0)); }

PG_SIM_KERNEL("avg_pool1d", avg_pool, kFloats);
PG_SIM_KERNEL("avg_pool2d", avg_pool, kFloats);
PG_SIM_KERNEL("avg_pool3d", avg_pool, kFloats);
PG_SIM_KERNEL("avg_pool1d_grad", avg_pool_grad, kFloats);
PG_SIM_KERNEL("avg_pool2d_grad", avg_pool_grad, kFloats);
PG_SIM_KERNEL("avg_pool3d_grad", avg_pool_grad, kFloats);

pg::ResampleTable table(const Work& work, const reference::Operand& x, const reference::Operand& y, int64_t axis) {
  pg::ResampledAxis resampled{static_cast<pg::Resampling>(work.attr<int32_t>("mode")), x.shape[axis], y.shape[axis],
                              work.attr<bool>("align_corners"), work.attr<double>("scale")};
  return resampled.table();
}
void resample(const Work& work) {
  int64_t axis = work.axis("axis", work.in(0).rank());
  if (work.out(0).count() == 0) return;  // its table may be large all the same
  reference::resample(table(work, work.in(0), work.out(0), axis), work.in(0), axis, work.out(0));
}
void resample_grad(const Work& work) {
  int64_t axis = work.axis("axis", work.in(0).rank());
  if (work.out(0).count() == 0) return;
  reference::resample_grad(table(work, work.out(0), work.in(0), axis), work.in(0), axis, work.out(0));
}
PG_SIM_KERNEL("resample", resample, kFloats);
PG_SIM_KERNEL("resample_grad", resample_grad, kFloats);

}  // namespace
}  // namespace sim
