// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN's graph API. A plan is made for addresses aligned to 16 bytes and one for others, both when the
// convolution is prepared: a launch never waits for cuDNN's heuristics, and may be captured.
#include "cudnn/conv.hpp"
#include "cudnn/conv_graph.hpp"
#include "cudnn/conv_plan.hpp"
#include "epilogue.hpp"
#include "scratch.hpp"

namespace cuda::dnn {
namespace {

class CudnnConvolution final : public Convolution {
 public:
  CudnnConvolution(const ConvShape& shape, uint32_t device, ConvPlan aligned, std::optional<Plan> unaligned)
      : s_(shape), device_(device), aligned_(std::move(aligned)), unaligned_(std::move(unaligned)) {
    if (!unaligned_) direct_ = make_direct_convolution(s_);
    Scratch scratch;
    plan_at_ = scratch.take(aligned_.plan.workspace());
    const Layouts& l = aligned_.layouts;
    if (l.copy_x) x_ = copy(s_.x, s_.x_stride, scratch);
    if (l.copy_weight) weight_ = copy(s_.weight, s_.weight_stride, scratch);
    if (l.copy_y) y_ = copy(s_.y, s_.y_stride, scratch);
    if (aligned_.fused_bias && s_.bias_stride != 1) {
      bias_ = OperandCopy(s_.dtype, {s_.y[1]}, {s_.bias_stride}, scratch);
    }
    workspace_ = scratch.bytes();
  }
  uint64_t workspace() const override { return workspace_; }

  void run(cudaStream_t stream, const ConvData& data) const override {
    auto address = [](const void* p) { return const_cast<void*>(p); };
    bool aligned = is_aligned(data);
    if (!aligned && direct_) return direct_->run(stream, data);
    bool fused_bias = aligned && aligned_.fused_bias;
    int64_t uids[] = {kX, kWeight, kY, kBias};
    void* at[] = {address(data.x == nullptr ? data.result : x_.run(stream, data.x, data.workspace)),
                  address(data.weight == nullptr ? data.result : weight_.run(stream, data.weight, data.workspace)),
                  address(data.y == nullptr ? data.result : y_.run(stream, data.y, data.workspace)), nullptr};
    if (fused_bias) at[3] = address(bias_.run(stream, data.bias, data.workspace));
    size_t tensors = fused_bias ? 4 : 3;
    const Plan& plan = aligned ? aligned_.plan : *unaligned_;
    plan.run(device_, stream, std::span(uids, tensors), std::span(at, tensors), piece(data.workspace, plan_at_));
    if (s_.bias && !fused_bias) {
      run_epilogue(stream, s_.dtype, s_.y[0], s_.y[1], count_of(s_.y) / (s_.y[0] * s_.y[1]),
                   {data.bias, s_.bias_stride}, data.result);
    }
  }

 private:
  OperandCopy copy(const Sizes& shape, const Sizes& stride, Scratch& scratch) const {
    return OperandCopy(s_.dtype, {shape.begin(), shape.end()}, {stride.begin(), stride.end()}, scratch);
  }

  // Whether all that the first plan would see is; copies are.
  bool is_aligned(const ConvData& data) const {
    auto bits = [](const void* p, const OperandCopy& copy) {
      return copy.needed() ? 0 : reinterpret_cast<uintptr_t>(p);
    };
    uintptr_t all =
        bits(data.x, x_) | bits(data.weight, weight_) | bits(data.y, y_) | reinterpret_cast<uintptr_t>(data.result);
    if (aligned_.fused_bias) all |= bits(data.bias, bias_);
    return all % kConvAlignment == 0;
  }

  ConvShape s_;
  uint32_t device_;
  ConvPlan aligned_;
  OperandCopy x_, weight_, y_, bias_;
  uint64_t plan_at_ = 0, workspace_ = 0;
  std::optional<Plan> unaligned_;
  std::unique_ptr<Convolution> direct_;  // where no engine takes unaligned addresses
};

}  // namespace

std::unique_ptr<Convolution> make_cudnn_convolution(const ConvShape& shape, uint32_t device, const std::string& what) {
  if (!data_type(shape.dtype)) return nullptr;
  use_device(device);
  DnnHandle handle(device);
  Target target{handle.get(), nullptr};
  Wanted wanted;
  wanted.workspace = workspace_limit_of(device), wanted.what = what;
  std::optional<ConvPlan> found = find_conv_plan(shape, target, wanted);
  if (!found) return nullptr;
  std::optional<Plan> unaligned = find_unaligned_plan(shape, *found, target, wanted);
  return std::make_unique<CudnnConvolution>(shape, device, std::move(*found), std::move(unaligned));
}

}  // namespace cuda::dnn
