// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN's graph API. A plan is made for addresses aligned to 16 bytes; the first launch with others
// makes a second one.
#include <mutex>

#include "add_bias.hpp"
#include "cudnn/conv.hpp"
#include "cudnn/plan.hpp"
#include "scratch.hpp"

namespace cuda::dnn {
namespace {

constexpr int64_t kAligned = 16;  // bytes: the widest access of a thread

enum Uid : int64_t { kX = 1, kWeight, kY, kBias, kSums };

std::optional<cudnnDataType_t> data_type(uint32_t dtype) {
  switch (dtype) {
    case PG_F32: return CUDNN_DATA_FLOAT;
    case PG_F64: return CUDNN_DATA_DOUBLE;
    case PG_F16: return CUDNN_DATA_HALF;
    case PG_BF16: return CUDNN_DATA_BFLOAT16;
    default: return std::nullopt;
  }
}

// What cuDNN is told, and the plan it led to.
struct Attempt {
  Layouts layouts;
  bool fused_bias = false;
  Plan plan;
};

struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, conv, x, weight, y;
};
constexpr OperationNames kForwardNames = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
constexpr OperationNames kInputNames = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
constexpr OperationNames kWeightNames = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};

Tensor tensor(int64_t uid, cudnnDataType_t type, const Four& shape, const Four& stride, int64_t alignment) {
  return {uid, type, {shape.begin(), shape.end()}, {stride.begin(), stride.end()}, alignment, false};
}

// The graph of one convolution, and the search for its plan.
class Graph {
 public:
  Graph(const ConvShape& shape, const Layouts& layouts, bool fused_bias, int64_t alignment)
      : s_(shape), type_(*data_type(shape.dtype)), fused_bias_(fused_bias), alignment_(alignment) {
    x_ = tensor(kX, type_, s_.x, told_strides(s_.x, layouts.x), alignment).describe();
    weight_ = tensor(kWeight, type_, s_.weight, told_strides(s_.weight, layouts.weight), alignment).describe();
    y_ = tensor(kY, type_, s_.y, told_strides(s_.y, layouts.y), alignment).describe();
    if (fused_bias_) {
      Tensor sums = tensor(kSums, CUDNN_DATA_FLOAT, s_.y, told_strides(s_.y, layouts.y), alignment);
      sums.is_virtual = true;
      sums_ = sums.describe();
    }
  }

  std::optional<Plan> find(uint32_t device, uint64_t workspace) const {
    Descriptor convolution = convolve();
    std::vector<const Descriptor*> operations = {&convolution};
    Descriptor addition;
    if (fused_bias_) {
      addition = add();
      operations.push_back(&addition);
    }
    Wanted wanted;
    wanted.exact = s_.dtype == PG_F32 || s_.dtype == PG_F64;
    wanted.workspace = workspace;
    return find_plan(device, operations, wanted);
  }

 private:
  cudnnDataType_t compute_type() const { return s_.dtype == PG_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT; }

  Descriptor convolve() const {
    Descriptor window(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    window.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute_type());
    window.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
    window.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2});
    window.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span(s_.dilation));
    window.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span(s_.stride));
    window.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span(s_.padding));
    window.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span(s_.padding));
    window.finalize();
    const OperationNames& names = s_.kind == ConvKind::kForward         ? kForwardNames
                                  : s_.kind == ConvKind::kInputGradient ? kInputNames
                                                                        : kWeightNames;
    Descriptor op(names.type);
    op.set(names.conv, window).set(names.x, x_).set(names.weight, weight_).set(names.y, fused_bias_ ? sums_ : y_);
    if (s_.dtype == PG_F64)
      op.set(names.alpha, CUDNN_TYPE_DOUBLE, 1.0).set(names.beta, CUDNN_TYPE_DOUBLE, 0.0);
    else
      op.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f).set(names.beta, CUDNN_TYPE_FLOAT, 0.0f);
    return std::move(op.finalize());
  }

  Descriptor add() const {
    Descriptor sum(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    sum.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_ADD);
    sum.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, compute_type());
    sum.finalize();
    Four shape = {1, s_.y[1], 1, 1};
    Descriptor bias = tensor(kBias, type_, shape, dense_strides(shape), alignment_).describe();
    Descriptor op(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, sum).set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, sums_);
    op.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, bias).set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y_);
    return std::move(op.finalize());
  }

  const ConvShape& s_;
  cudnnDataType_t type_;
  bool fused_bias_;
  int64_t alignment_;
  Descriptor x_, weight_, y_, sums_;
};

std::optional<Attempt> attempt(const ConvShape& s, uint32_t device, bool as_given, bool fused_bias) {
  Attempt result;
  result.layouts = choose_layouts(s, as_given), result.fused_bias = fused_bias;
  std::optional<Plan> plan = Graph(s, result.layouts, fused_bias, kAligned).find(device, Wanted().workspace);
  if (!plan) return std::nullopt;
  result.plan = std::move(*plan);
  return result;
}

// Fused additions are compiled for tensor cores, so they are not asked for where these are not wanted.
std::optional<Attempt> first_that_works(const ConvShape& s, uint32_t device) {
  bool half = s.dtype == PG_F16 || s.dtype == PG_BF16;
  std::optional<Attempt> found;
  if (s.bias && half) found = attempt(s, device, true, true);
  if (!found) found = attempt(s, device, true, false);
  if (!found && !choose_layouts(s, true).all_dense()) found = attempt(s, device, false, false);
  return found;
}

class CudnnConvolution final : public Convolution {
 public:
  CudnnConvolution(const ConvShape& shape, uint32_t device, Attempt attempt)
      : s_(shape), device_(device), attempt_(std::move(attempt)) {
    Scratch scratch;
    plan_at_ = scratch.take(attempt_.plan.workspace());
    const Layouts& l = attempt_.layouts;
    if (l.copy_x) x_ = copy(s_.x, s_.x_stride, scratch);
    if (l.copy_weight) weight_ = copy(s_.weight, s_.weight_stride, scratch);
    if (l.copy_y) y_ = copy(s_.y, s_.y_stride, scratch);
    if (attempt_.fused_bias && s_.bias_stride != 1) {
      bias_ = OperandCopy(s_.dtype, {s_.y[1]}, {s_.bias_stride}, scratch);
    }
    workspace_ = scratch.bytes();
  }
  uint64_t workspace() const override { return workspace_; }

  void run(cudaStream_t stream, const ConvData& data) const override {
    auto address = [](const void* p) { return const_cast<void*>(p); };
    int64_t uids[] = {kX, kWeight, kY, kBias};
    void* at[] = {address(data.x == nullptr ? data.result : x_.run(stream, data.x, data.workspace)),
                  address(data.weight == nullptr ? data.result : weight_.run(stream, data.weight, data.workspace)),
                  address(data.y == nullptr ? data.result : y_.run(stream, data.y, data.workspace)), nullptr};
    if (attempt_.fused_bias) at[3] = address(bias_.run(stream, data.bias, data.workspace));
    size_t tensors = attempt_.fused_bias ? 4 : 3;
    const Plan* plan = plan_for(std::span(at, tensors));
    if (plan == nullptr) return direct_->run(stream, data);
    plan->run(device_, stream, std::span(uids, tensors), std::span(at, tensors), piece(data.workspace, plan_at_));
    if (s_.bias && !attempt_.fused_bias) {
      add_bias(stream, s_.dtype, s_.y[0], s_.y[1], s_.y[2] * s_.y[3], data.bias, s_.bias_stride, data.result);
    }
  }

 private:
  OperandCopy copy(const Four& shape, const Four& stride, Scratch& scratch) const {
    return OperandCopy(s_.dtype, {shape.begin(), shape.end()}, {stride.begin(), stride.end()}, scratch);
  }

  // NULL: no engine takes these addresses within the workspace that was announced.
  const Plan* plan_for(std::span<void* const> addresses) const {
    uintptr_t bits = 0;
    for (void* p : addresses) bits |= reinterpret_cast<uintptr_t>(p);
    if (bits % kAligned == 0) return &attempt_.plan;
    std::call_once(unaligned_once_, [&] {
      Graph graph(s_, attempt_.layouts, attempt_.fused_bias, pg::dtype_bytes(s_.dtype));
      unaligned_ = graph.find(device_, attempt_.plan.workspace());
      if (!unaligned_) {
        pg::log(PG_LOG_DEBUG, "cuDNN has no engine for unaligned addresses: own kernels compute a convolution");
        direct_ = make_direct_convolution(s_);
      }
    });
    return unaligned_ ? &*unaligned_ : nullptr;
  }

  ConvShape s_;
  uint32_t device_;
  Attempt attempt_;
  OperandCopy x_, weight_, y_, bias_;
  uint64_t plan_at_ = 0, workspace_ = 0;
  mutable std::once_flag unaligned_once_;
  mutable std::optional<Plan> unaligned_;
  mutable std::unique_ptr<Convolution> direct_;
};

}  // namespace

std::unique_ptr<Convolution> make_cudnn_convolution(const ConvShape& shape, uint32_t device) {
  if (!data_type(shape.dtype)) return nullptr;
  std::optional<Attempt> found = first_that_works(shape, device);
  if (!found) return nullptr;
  return std::make_unique<CudnnConvolution>(shape, device, std::move(*found));
}

}  // namespace cuda::dnn
