// SPDX-License-Identifier: Apache-2.0
// conv1d, 2d, 3d (x, weight, bias?), the same behind an activation (conv1d_activation, ...), their gradients
// _grad_input(dy, weight, x) and _grad_weight(dy, x, weight), where of the last input only the shape counts,
// conv1d_grad and its kin (dy, x, weight, y?) for all of them at once, and conv_transpose1d, 2d, 3d (x, weight, bias?):
// the gradient of an input that has a bias.
#include "conv/conv_gradients.hpp"

#include "kernels/windows.hpp"

namespace pg::cpu {
namespace {

bool names(const KernelCall& call, const char* part) { return std::strstr(call.op(), part) != nullptr; }

ConvKind kind_of(const KernelCall& call) {
  if (names(call, "_grad_weight")) return ConvKind::kWeightGradient;
  if (names(call, "_grad_input") || names(call, "_transpose")) return ConvKind::kInputGradient;
  return ConvKind::kForward;
}

void read_padding(const KernelCall& call, uint32_t axes, int64_t (&before)[3]) {
  auto list = call.attr<pg_ints>("padding");
  if (list.count != 2 * axes) return read_list(call, "padding", axes, before);
  for (uint32_t i = 0; i < axes; i++) before[3 - axes + i] = list.value[2 * i];
}

// Attributes, and the three tensors of the product.
ConvShape read_shape(const KernelCall& call, ConvKind kind, const pg_tensor* x, const pg_tensor* weight,
                     const pg_tensor* y) {
  ConvShape s{};
  s.kind = kind;
  uint32_t rank = x->rank, axes = rank - 2;
  if (rank < 3 || rank > 5 || weight->rank != rank || y->rank != rank) {
    fail_argument(format("%s: x, weight and y must have 3 to 5 axes, all as many", call.op()));
  }
  s.x = ConvOperand(*x), s.weight = ConvOperand(*weight), s.y = ConvOperand(*y);
  s.n = x->shape[0], s.c = x->shape[1], s.o = weight->shape[0];
  read_sizes(*x, s.in), read_sizes(*y, s.out), read_sizes(*weight, s.kernel);
  s.groups = call.attr<int64_t>("groups");
  read_list(call, "stride", axes, s.stride), read_list(call, "dilation", axes, s.dilation);
  read_padding(call, axes, s.padding);
  bool fits = s.groups > 0 && weight->shape[1] * s.groups == s.c && s.o % s.groups == 0;
  if (!fits || y->shape[0] != s.n || y->shape[1] != s.o) {
    fail_argument(format("%s: x %s, weight %s, y %s and %lld groups do not fit together", call.op(),
                         shape_text(*x).c_str(), shape_text(*weight).c_str(), shape_text(*y).c_str(),
                         static_cast<long long>(s.groups)));
  }
  return s;
}

ConvShape read_shape(const KernelCall& call) {
  const ConvKind kind = kind_of(call);
  const pg_tensor *x = &call.in(0), *weight = &call.in(1), *y = &call.out(0);
  if (kind == ConvKind::kInputGradient) std::swap(x, y);
  if (kind == ConvKind::kWeightGradient) y = &call.in(0), x = &call.in(1), weight = &call.out(0);
  ConvShape s = read_shape(call, kind, x, weight, y);
  s.dtype = dtype_of(call.out(0));
  s.relu = names(call, "_activation");  // the only one there is
  s.bias = kind != ConvKind::kWeightGradient && !names(call, "_grad_input") && call.has(2);
  if (s.bias) s.bias_stride = call.in(2).stride[0];
  return s;
}

class Conv final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    ConvShape s = read_shape(call);
    require_float(call, s.dtype);
    bool same = dtype_of(call.in(0)) == s.dtype && dtype_of(call.in(1)) == s.dtype;
    if (!same || (s.bias && dtype_of(call.in(2)) != s.dtype)) fail_support("operands must share one dtype");
    require_result(s);
  }

  Conv(const KernelCall& call, Plan& plan) {
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
    if (bias_) d.bias = input(launch, 2);
    switch (kind_) {
      case ConvKind::kForward: d.x = first, d.weight = second; break;
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
  // oneDNN's convolutions write channels-last results as they are to lie; a bias behind one is added to row-major ones.
  static void require_result(const ConvShape& s) {
    if (s.result().count() == 0 || s.result().dense()) return;
    const bool adds_bias = s.bias && s.kind == ConvKind::kInputGradient;
    if (!s.result().channels_last() || adds_bias || make_onednn_convolution(s) == nullptr)
      fail_support("the result must be row-major, or channels-last where oneDNN has a kernel");
  }

  ConvKind kind_;
  bool bias_;
  std::unique_ptr<Convolution> convolution_;
};

class ConvGrad final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    if (make(call) == nullptr) fail_support("only large batches of dense tensors gain by one pass over dy");
  }
  ConvGrad(const KernelCall& call, Plan& plan) : gradients_(make(call)) {
    with_dx_ = call.attr<bool>("with_dx"), with_dbias_ = call.attr<bool>("with_dbias"), behind_relu_ = call.has(3);
    plan.workspace = gradients_->workspace();
    plan.pack_bytes[2] = gradients_->packed_bytes();
  }

  void launch(const pg_launch& launch) override {
    ConvGradients::Data d{};
    d.dy = input(launch, 0), d.x = input(launch, 1), d.weight = input(launch, 2);
    if (behind_relu_) d.y = input(launch, 3);
    if (with_dx_) d.dx = output(launch, 0);
    d.dweight = output(launch, 1);
    if (with_dbias_) d.dbias = output(launch, 2);
    d.workspace = host_pointer(launch.workspace);
    if (launch.packed != nullptr) d.packed_weight = host_pointer<const void>(launch.packed[2]);
    gradients_->run(d);
  }

  void pack(uint32_t, const pg_launch& launch, pg_address target) override {
    gradients_->pack(input(launch, 2), host_pointer(target));
  }

 private:
  static std::unique_ptr<ConvGradients> make(const KernelCall& call) {
    ConvShape s = read_shape(call, ConvKind::kWeightGradient, &call.in(1), &call.in(2), &call.in(0));
    s.dtype = dtype_of(call.out(1));
    require_float(call, s.dtype);
    for (uint32_t i : {0u, 1u, 2u, 3u}) {
      if (call.has(i) && dtype_of(call.in(i)) != s.dtype) fail_support("operands must share one dtype");
    }
    if (!s.x.dense() || !s.y.dense() || (call.has(3) && !is_dense(call.in(3)))) return nullptr;
    s.bias = call.attr<bool>("with_dbias");
    return ConvGradients::make(s, call.attr<bool>("with_dx"), call.has(3));
  }

  std::unique_ptr<ConvGradients> gradients_;
  bool with_dx_, with_dbias_, behind_relu_;
};

constexpr uint64_t kWeight = 1u << 1;      // what may be packed
constexpr uint64_t kGradWeight = 1u << 2;  // ... of conv_grad

PG_KERNEL("conv1d", Conv, PG_KERNEL_ANY_ORDER, kWeight);
PG_KERNEL("conv2d", Conv, PG_KERNEL_ANY_ORDER, kWeight);
PG_KERNEL("conv3d", Conv, PG_KERNEL_ANY_ORDER, kWeight);
PG_KERNEL("conv1d_activation", Conv, PG_KERNEL_ANY_ORDER, kWeight);
PG_KERNEL("conv2d_activation", Conv, PG_KERNEL_ANY_ORDER, kWeight);
PG_KERNEL("conv3d_activation", Conv, PG_KERNEL_ANY_ORDER, kWeight);
PG_KERNEL("conv1d_grad_input", Conv, PG_KERNEL_ANY_ORDER, kWeight);
PG_KERNEL("conv2d_grad_input", Conv, PG_KERNEL_ANY_ORDER, kWeight);
PG_KERNEL("conv3d_grad_input", Conv, PG_KERNEL_ANY_ORDER, kWeight);
PG_KERNEL("conv_transpose1d", Conv, PG_KERNEL_ANY_ORDER, kWeight);
PG_KERNEL("conv_transpose2d", Conv, PG_KERNEL_ANY_ORDER, kWeight);
PG_KERNEL("conv_transpose3d", Conv, PG_KERNEL_ANY_ORDER, kWeight);
PG_KERNEL("conv1d_grad_weight", Conv, PG_KERNEL_ANY_ORDER);
PG_KERNEL("conv2d_grad_weight", Conv, PG_KERNEL_ANY_ORDER);
PG_KERNEL("conv3d_grad_weight", Conv, PG_KERNEL_ANY_ORDER);
PG_KERNEL("conv1d_grad", ConvGrad, 0, kGradWeight);
PG_KERNEL("conv2d_grad", ConvGrad, 0, kGradWeight);
PG_KERNEL("conv3d_grad", ConvGrad, 0, kGradWeight);

}  // namespace

ConvShape read_convolution(const KernelCall& call) { return read_shape(call); }

}  // namespace pg::cpu
