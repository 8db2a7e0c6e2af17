// SPDX-License-Identifier: Apache-2.0
// conv2d(x, weight, bias?), conv2d_grad_input(dy, weight, x) and conv2d_grad_weight(dy, x, weight); of the last input
// of the gradients only the shape counts.
#include <algorithm>

#include "cudnn/conv.hpp"
#include "perigee/kernels/strided.hpp"

namespace cuda {
namespace {

using dnn::ConvKind;
using dnn::ConvShape;

// {rows, columns} of a list attribute; one number stands for both.
void read_pair(const pg::KernelCall& call, const char* name, int64_t pair[2]) {
  auto list = call.attr<pg_ints>(name);
  if (list.count != 1 && list.count != 2) {
    pg::fail_argument(pg::format("%s: %s must be one number or two", call.op(), name));
  }
  pair[0] = list.value[0], pair[1] = list.value[list.count - 1];
}

// {rows, columns}, or {before and behind the rows, before and behind the columns}.
void read_padding(const pg::KernelCall& call, ConvShape& s) {
  if (auto list = call.attr<pg_ints>("padding"); list.count == 4) {
    for (int i = 0; i < 2; i++) s.padding[i] = list.value[2 * i], s.behind[i] = list.value[2 * i + 1];
    return;
  }
  read_pair(call, "padding", s.padding);
  std::copy_n(s.padding, 2, s.behind);
}

void read_tensor(const pg_tensor& t, dnn::Four& shape, dnn::Four& stride) {
  if (t.rank != 4) pg::fail_argument("conv2d: x, weight and y must have 4 axes");
  std::copy_n(t.shape, 4, shape.begin());
  std::copy_n(t.stride, 4, stride.begin());
}

ConvShape read_shape(const pg::KernelCall& call) {
  ConvShape s;
  const pg_tensor* x = &call.in(0);
  const pg_tensor* weight = &call.in(1);
  const pg_tensor* y = &call.out(0);
  if (call.is("conv2d_grad_input"))
    s.kind = ConvKind::kInputGradient, std::swap(x, y);
  else if (call.is("conv2d_grad_weight"))
    s.kind = ConvKind::kWeightGradient, y = &call.in(0), x = &call.in(1), weight = &call.out(0);
  s.bias = s.kind == ConvKind::kForward && call.has(2);
  if (s.bias) s.bias_stride = call.in(2).stride[0];
  s.dtype = pg::dtype_of(call.out(0));
  read_tensor(*x, s.x, s.x_stride), read_tensor(*weight, s.weight, s.weight_stride), read_tensor(*y, s.y, s.y_stride);
  s.groups = call.attr<int64_t>("groups");
  read_pair(call, "stride", s.stride), read_padding(call, s), read_pair(call, "dilation", s.dilation);
  bool fits = s.groups > 0 && s.weight[1] * s.groups == s.x[1] && s.weight[0] % s.groups == 0;
  if (!fits || s.y[0] != s.x[0] || s.y[1] != s.weight[0]) {
    pg::fail_argument(pg::format("conv2d: x %s, weight %s, y %s and %lld groups do not fit together",
                                 pg::shape_text(*x).c_str(), pg::shape_text(*weight).c_str(),
                                 pg::shape_text(*y).c_str(), static_cast<long long>(s.groups)));
  }
  return s;
}

std::string asked(const pg::KernelCall& call, const ConvShape& s) {
  auto n = [](int64_t value) { return static_cast<long long>(value); };
  return std::string(call.op()) + " of " + pg::describe(call) +
         pg::format(", stride {%lld, %lld}, padding {%lld to %lld, %lld to %lld}, dilation {%lld, %lld}, groups %lld",
                    n(s.stride[0]), n(s.stride[1]), n(s.padding[0]), n(s.behind[0]), n(s.padding[1]), n(s.behind[1]),
                    n(s.dilation[0]), n(s.dilation[1]), n(s.groups));
}

class Conv2d final : public Kernel {
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

  Conv2d(const pg::KernelCall& call, pg::Plan& plan) {
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

PG_KERNEL("conv2d", Conv2d);
PG_KERNEL("conv2d_grad_input", Conv2d);
PG_KERNEL("conv2d_grad_weight", Conv2d);

}  // namespace
}  // namespace cuda
