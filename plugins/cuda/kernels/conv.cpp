// SPDX-License-Identifier: Apache-2.0
// conv2d(x, weight, bias?), conv2d_grad_input(dy, weight, x) and conv2d_grad_weight(dy, x, weight), and the same of
// volumes, conv3d; of the last input of the gradients only the shape counts.
#include <algorithm>
#include <cstring>

#include "cudnn/conv.hpp"
#include "perigee/kernels/strided.hpp"

namespace cuda {
namespace {

using dnn::ConvKind;
using dnn::ConvShape;

// A number an axis of a list attribute; one number stands for all.
void read_list(const pg::KernelCall& call, const char* name, uint32_t axes, int64_t (&numbers)[3]) {
  auto list = call.attr<pg_ints>(name);
  if (list.count != 1 && list.count != axes) {
    pg::fail_argument(pg::format("%s: %s must be one number or %u", call.op(), name, axes));
  }
  for (uint32_t i = 0; i < axes; i++) numbers[i] = list.value[list.count == 1 ? 0 : i];
}

// A number an axis, or two of each: before it and behind it.
void read_padding(const pg::KernelCall& call, ConvShape& s) {
  const auto axes = static_cast<uint32_t>(s.axes());
  if (auto list = call.attr<pg_ints>("padding"); list.count == 2 * axes) {
    for (uint32_t i = 0; i < axes; i++) s.padding[i] = list.value[2 * i], s.behind[i] = list.value[2 * i + 1];
    return;
  }
  read_list(call, "padding", axes, s.padding);
  std::copy_n(s.padding, 3, s.behind);
}

void read_tensor(const pg::KernelCall& call, const pg_tensor& t, uint32_t rank, dnn::Sizes& shape, dnn::Sizes& stride) {
  if (t.rank != rank) pg::fail_argument(pg::format("%s: x, weight and y must have %u axes", call.op(), rank));
  shape = dnn::Sizes::of(t.shape, rank), stride = dnn::Sizes::of(t.stride, rank);
}

bool is_any(const pg::KernelCall& call, const char* images, const char* volumes) {
  return call.is(images) || call.is(volumes);
}

ConvShape read_shape(const pg::KernelCall& call) {
  ConvShape s;
  const pg_tensor* x = &call.in(0);
  const pg_tensor* weight = &call.in(1);
  const pg_tensor* y = &call.out(0);
  if (is_any(call, "conv2d_grad_input", "conv3d_grad_input"))
    s.kind = ConvKind::kInputGradient, std::swap(x, y);
  else if (is_any(call, "conv2d_grad_weight", "conv3d_grad_weight"))
    s.kind = ConvKind::kWeightGradient, y = &call.in(0), x = &call.in(1), weight = &call.out(0);
  s.bias = s.kind == ConvKind::kForward && call.has(2);
  if (s.bias) s.bias_stride = call.in(2).stride[0];
  s.dtype = pg::dtype_of(call.out(0));
  const uint32_t rank = std::strncmp(call.op(), "conv3d", 6) == 0 ? 5 : 4;
  read_tensor(call, *x, rank, s.x, s.x_stride), read_tensor(call, *weight, rank, s.weight, s.weight_stride);
  read_tensor(call, *y, rank, s.y, s.y_stride);
  s.groups = call.attr<int64_t>("groups");
  read_list(call, "stride", rank - 2, s.stride), read_padding(call, s);
  read_list(call, "dilation", rank - 2, s.dilation);
  bool fits = s.groups > 0 && s.weight[1] * s.groups == s.x[1] && s.weight[0] % s.groups == 0;
  if (!fits || s.y[0] != s.x[0] || s.y[1] != s.weight[0]) {
    pg::fail_argument(pg::format("%s: x %s, weight %s, y %s and %lld groups do not fit together", call.op(),
                                 pg::shape_text(*x).c_str(), pg::shape_text(*weight).c_str(),
                                 pg::shape_text(*y).c_str(), static_cast<long long>(s.groups)));
  }
  return s;
}

std::string asked(const pg::KernelCall& call, const ConvShape& s) {
  auto list = [&](const int64_t* numbers, const int64_t* to = nullptr) {
    std::string text;
    for (size_t i = 0; i < s.axes(); i++) {
      text += (i == 0 ? "{" : ", ") + std::to_string(numbers[i]);
      if (to != nullptr) text += " to " + std::to_string(to[i]);
    }
    return text + "}";
  };
  return std::string(call.op()) + " of " + pg::describe(call) + ", stride " + list(s.stride) + ", padding " +
         list(s.padding, s.behind) + ", dilation " + list(s.dilation) + ", groups " + std::to_string(s.groups);
}

class Conv final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kFloats);
    ConvShape s = read_shape(call);
    for (uint32_t i = 0; i < (s.kind == ConvKind::kForward ? call.input_count() : 2); i++) {
      if (call.has(i) && pg::dtype_of(call.in(i)) != s.dtype) pg::fail_support("operands must share one dtype");
    }
    with_float(s.dtype, [](auto) {});
    if (!pg::is_contiguous(call.out(0))) pg::fail_support("the result must be dense");
  }

  Conv(const pg::KernelCall& call, pg::Plan& plan) {
    ConvShape s = read_shape(call);
    kind_ = s.kind, bias_ = s.bias;
    convolution_ = dnn::make_convolution(s, call.raw->device, asked(call, s));
    plan.workspace = convolution_->workspace();
  }

  void run(const Launch& launch) override {
    const void *first = launch.in(0), *second = launch.in(1);
    dnn::ConvData d{};
    d.result = launch.out(0), d.workspace = launch.workspace();
    switch (kind_) {
      case ConvKind::kForward: d.x = first, d.weight = second, d.bias = bias_ ? launch.in(2) : nullptr; break;
      case ConvKind::kInputGradient: d.y = first, d.weight = second; break;
      case ConvKind::kWeightGradient: d.y = first, d.x = second; break;
    }
    convolution_->run(launch.native(), d);
  }

 private:
  ConvKind kind_;
  bool bias_;
  std::unique_ptr<dnn::Convolution> convolution_;
};

PG_KERNEL("conv2d", Conv);
PG_KERNEL("conv2d_grad_input", Conv);
PG_KERNEL("conv2d_grad_weight", Conv);
PG_KERNEL("conv3d", Conv);
PG_KERNEL("conv3d_grad_input", Conv);
PG_KERNEL("conv3d_grad_weight", Conv);

}  // namespace
}  // namespace cuda
