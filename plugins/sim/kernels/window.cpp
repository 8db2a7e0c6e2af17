// SPDX-License-Identifier: Apache-2.0
// Convolution and pooling.
#include "../launch.hpp"
#include "perigee/kernels/reference/conv.hpp"
#include "perigee/kernels/reference/pool.hpp"

namespace sim {
namespace {

namespace reference = pg::reference;

// Sets both entries of a pair from an attribute; an empty list leaves them.
void set_pair(const Work& work, const char* name, int64_t* pair) {
  if (!work.has_attr(name)) return;
  std::vector<int64_t> list = work.list(name);
  if (!list.empty()) pair[0] = list[0], pair[1] = list.back();
}

reference::Window window(const Work& work) {
  reference::Window out{};
  for (int axis = 0; axis < 2; axis++) out.stride[axis] = out.dilation[axis] = 1;
  set_pair(work, "kernel", out.kernel);
  if (work.has_attr("kernel")) set_pair(work, "kernel", out.stride);  // pooling: as far as the window is wide
  set_pair(work, "stride", out.stride);
  set_pair(work, "padding", out.padding);
  set_pair(work, "dilation", out.dilation);
  return out;
}

void conv2d(const Work& work) {
  reference::conv2d(work.in(0), work.in(1), work.input(2), window(work), work.attr<int64_t>("groups"), work.out(0));
}
void conv2d_grad_input(const Work& work) {
  reference::conv2d_grad_input(work.in(0), work.in(1), window(work), work.attr<int64_t>("groups"), work.out(0));
}
void conv2d_grad_weight(const Work& work) {
  reference::conv2d_grad_weight(work.in(0), work.in(1), window(work), work.attr<int64_t>("groups"), work.out(0));
}
void max_pool2d(const Work& work) { reference::max_pool2d(work.in(0), window(work), work.out(0), work.output(1)); }
void max_pool2d_grad(const Work& work) { reference::max_pool2d_grad(work.in(0), work.in(1), work.out(0)); }
void max_pool2d_gather(const Work& work) { reference::max_pool2d_gather(work.in(0), work.in(1), work.out(0)); }
void avg_pool2d(const Work& work) {
  reference::avg_pool2d(work.in(0), window(work), work.attr<bool>("count_include_pad"), work.out(0));
}
void avg_pool2d_grad(const Work& work) {
  reference::avg_pool2d_grad(work.in(0), window(work), work.attr<bool>("count_include_pad"), work.out(0));
}

PG_SIM_KERNEL("conv2d", conv2d, kFloats);
PG_SIM_KERNEL("conv2d_grad_input", conv2d_grad_input, kFloats);
PG_SIM_KERNEL("conv2d_grad_weight", conv2d_grad_weight, kFloats);
PG_SIM_KERNEL("max_pool2d", max_pool2d, kNumbers);
PG_SIM_KERNEL("max_pool2d_grad", max_pool2d_grad, kNumbers);
PG_SIM_KERNEL("max_pool2d_gather", max_pool2d_gather, kNumbers);
PG_SIM_KERNEL("avg_pool2d", avg_pool2d, kFloats);
PG_SIM_KERNEL("avg_pool2d_grad", avg_pool2d_grad, kFloats);

}  // namespace
}  // namespace sim
