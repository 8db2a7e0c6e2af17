// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN's graph API. A plan is made for addresses aligned to 16 bytes and one for others, both when the
// convolution is prepared: a launch never waits for cuDNN's heuristics, and may be captured.
#include "cudnn/conv.hpp"
#include "cudnn/conv_graph.hpp"
#include "cudnn/plan.hpp"
#include "epilogue.hpp"
#include "scratch.hpp"

namespace cuda::dnn {
namespace {

constexpr int64_t kAligned = 16;  // bytes: the widest access of a thread

// What cuDNN is told, and the plan it led to.
struct Attempt {
  Layouts layouts;
  bool fused_bias = false;
  Plan plan;
};

std::optional<Plan> find(const ConvShape& s, const Layouts& layouts, bool fused_bias, int64_t alignment,
                         uint32_t device, uint64_t workspace) {
  Wanted wanted;
  wanted.exact = s.dtype == PG_F32 || s.dtype == PG_F64;
  wanted.workspace = workspace;
  auto graph = std::make_shared<ConvGraph>(s, layouts, fused_bias, alignment);
  return find_plan(device, graph->operations(), wanted, graph);
}

std::optional<Attempt> attempt(const ConvShape& s, uint32_t device, bool as_given, bool fused_bias) {
  Attempt result;
  result.layouts = choose_layouts(s, as_given), result.fused_bias = fused_bias;
  std::optional<Plan> plan = find(s, result.layouts, fused_bias, kAligned, device, Wanted().workspace);
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

// For addresses that are aligned to an element only, which are rare: within the workspace of the other plan, and never
// with a bias in the graph, which cuDNN would compile a kernel for.
std::optional<Plan> find_unaligned(const ConvShape& s, const Attempt& attempt, uint32_t device) {
  std::optional<Plan> plan =
      find(s, attempt.layouts, false, pg::dtype_bytes(s.dtype), device, attempt.plan.workspace());
  if (!plan) take_cudnn_reason();  // of no interest to whoever fails next
  return plan;
}

class CudnnConvolution final : public Convolution {
 public:
  CudnnConvolution(const ConvShape& shape, uint32_t device, Attempt attempt)
      : s_(shape), device_(device), attempt_(std::move(attempt)), unaligned_(find_unaligned(s_, attempt_, device)) {
    if (!unaligned_) direct_ = make_direct_convolution(s_);
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
    bool aligned = is_aligned(data);
    if (!aligned && direct_) return direct_->run(stream, data);
    bool fused_bias = aligned && attempt_.fused_bias;
    int64_t uids[] = {kX, kWeight, kY, kBias};
    void* at[] = {address(data.x == nullptr ? data.result : x_.run(stream, data.x, data.workspace)),
                  address(data.weight == nullptr ? data.result : weight_.run(stream, data.weight, data.workspace)),
                  address(data.y == nullptr ? data.result : y_.run(stream, data.y, data.workspace)), nullptr};
    if (fused_bias) at[3] = address(bias_.run(stream, data.bias, data.workspace));
    size_t tensors = fused_bias ? 4 : 3;
    const Plan& plan = aligned ? attempt_.plan : *unaligned_;
    plan.run(device_, stream, std::span(uids, tensors), std::span(at, tensors), piece(data.workspace, plan_at_));
    if (s_.bias && !fused_bias) {
      run_epilogue(stream, s_.dtype, s_.y[0], s_.y[1], s_.y[2] * s_.y[3], {data.bias, s_.bias_stride}, data.result);
    }
  }

 private:
  OperandCopy copy(const Four& shape, const Four& stride, Scratch& scratch) const {
    return OperandCopy(s_.dtype, {shape.begin(), shape.end()}, {stride.begin(), stride.end()}, scratch);
  }

  // Whether all that the first plan would see is; copies are.
  bool is_aligned(const ConvData& data) const {
    auto bits = [](const void* p, const OperandCopy& copy) {
      return copy.needed() ? 0 : reinterpret_cast<uintptr_t>(p);
    };
    uintptr_t all =
        bits(data.x, x_) | bits(data.weight, weight_) | bits(data.y, y_) | reinterpret_cast<uintptr_t>(data.result);
    if (attempt_.fused_bias) all |= bits(data.bias, bias_);
    return all % kAligned == 0;
  }

  ConvShape s_;
  uint32_t device_;
  Attempt attempt_;
  OperandCopy x_, weight_, y_, bias_;
  uint64_t plan_at_ = 0, workspace_ = 0;
  std::optional<Plan> unaligned_;
  std::unique_ptr<Convolution> direct_;  // where no engine takes unaligned addresses
};

}  // namespace

std::unique_ptr<Convolution> make_cudnn_convolution(const ConvShape& shape, uint32_t device) {
  if (!data_type(shape.dtype)) return nullptr;
  std::optional<Attempt> found = first_that_works(shape, device);
  if (!found) return nullptr;
  return std::make_unique<CudnnConvolution>(shape, device, std::move(*found));
}

}  // namespace cuda::dnn
