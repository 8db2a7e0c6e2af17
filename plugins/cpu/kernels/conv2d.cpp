// SPDX-License-Identifier: Apache-2.0
// conv2d(x, weight, bias?), conv2d_grad_input(dy, weight, x) and conv2d_grad_weight(dy, x, weight); of the last input
// of the gradients only the shape counts.
#include "conv/conv.hpp"
#include "kernels/windows.hpp"

namespace pg::cpu {
namespace {

ConvShape read_shape(const KernelCall& call) {
  ConvShape s{};
  const pg_tensor& result = call.out(0);
  if (call.is("conv2d")) {
    s.kind = ConvKind::kForward, s.x = call.in(0), s.weight = call.in(1), s.y = result;
    s.bias = call.has(2);
    if (s.bias) s.bias_stride = call.in(2).stride[0];
  } else if (call.is("conv2d_grad_input")) {
    s.kind = ConvKind::kInputGradient, s.y = call.in(0), s.weight = call.in(1), s.x = result;
  } else {
    s.kind = ConvKind::kWeightGradient, s.y = call.in(0), s.x = call.in(1), s.weight = result;
  }
  s.dtype = dtype_of(result);
  if (s.x.rank != 4 || s.weight.rank != 4 || s.y.rank != 4) fail_argument("conv2d: x, weight and y must have 4 axes");
  s.n = s.x.shape[0], s.c = s.x.shape[1], s.h = s.x.shape[2], s.w = s.x.shape[3];
  s.o = s.weight.shape[0], s.kh = s.weight.shape[2], s.kw = s.weight.shape[3];
  s.oh = s.y.shape[2], s.ow = s.y.shape[3];
  s.groups = call.attr<int64_t>("groups");
  read_pair(call, "stride", s.stride), read_pair(call, "padding", s.padding), read_pair(call, "dilation", s.dilation);
  bool fits = s.groups > 0 && s.weight.shape[1] * s.groups == s.c && s.o % s.groups == 0;
  if (!fits || s.y.shape[0] != s.n || s.y.shape[1] != s.o) {
    fail_argument(format("conv2d: x %s, weight %s, y %s and %lld groups do not fit together", shape_text(s.x).c_str(),
                         shape_text(s.weight).c_str(), shape_text(s.y).c_str(), static_cast<long long>(s.groups)));
  }
  return s;
}

class Conv2d final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    ConvShape s = read_shape(call);
    require_float(call, s.dtype);
    bool same = dtype_of(s.x) == s.dtype && dtype_of(s.weight) == s.dtype && dtype_of(s.y) == s.dtype;
    if (!same || (s.bias && dtype_of(call.in(2)) != s.dtype)) fail_support("operands must share one dtype");
    if (!is_dense(call.out(0))) fail_support("the result must be dense");
  }

  Conv2d(const KernelCall& call, Plan& plan) {
    ConvShape s = read_shape(call);
    kind_ = s.kind, bias_ = s.bias;
    convolution_ = make_convolution(s);
    plan.workspace = convolution_->workspace();
    plan.pack_bytes[1] = convolution_->packed_bytes();
  }

  void launch(const pg_launch& launch) override {
    const void *first = input(launch, 0), *second = input(launch, 1);
    ConvData d{};
    d.result = output(launch, 0), d.workspace = host_pointer(launch.workspace);
    switch (kind_) {
      case ConvKind::kForward: d.x = first, d.weight = second, d.bias = bias_ ? input(launch, 2) : nullptr; break;
      case ConvKind::kInputGradient: d.y = first, d.weight = second; break;
      case ConvKind::kWeightGradient: d.y = first, d.x = second; break;
    }
    if (launch.packed != nullptr) d.packed_weight = host_pointer<const void>(launch.packed[1]);
    convolution_->run(d);
  }

  void pack(uint32_t, const pg_launch& launch, pg_address target) override {
    convolution_->pack(input(launch, 1), host_pointer(target));
  }

 private:
  ConvKind kind_;
  bool bias_;
  std::unique_ptr<Convolution> convolution_;
};

PG_KERNEL("conv2d", Conv2d, PG_KEY_SHAPES, 1u << 1);
PG_KERNEL("conv2d_grad_input", Conv2d, PG_KEY_SHAPES, 1u << 1);
PG_KERNEL("conv2d_grad_weight", Conv2d);

}  // namespace
}  // namespace pg::cpu
