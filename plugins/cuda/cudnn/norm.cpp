// SPDX-License-Identifier: Apache-2.0
// One plan for aligned addresses, made when the normalisation is prepared: a launch never waits for cuDNN's heuristics,
// and may be captured.
#include "cudnn/norm.hpp"

#include <initializer_list>

#include "cudnn/norm_graph.hpp"
#include "cudnn/plan.hpp"
#include "scratch.hpp"

namespace cuda::dnn {
namespace {

// Addresses by name of the tensor.
class Pack {
 public:
  void put(NormUid uid, const void* address) {
    uids_.push_back(uid);
    addresses_.push_back(const_cast<void*>(address));
  }
  void run(const Plan& plan, uint32_t device, cudaStream_t stream, void* workspace) const {
    plan.run(device, stream, uids_, addresses_, workspace);
  }

 private:
  std::vector<int64_t> uids_;
  std::vector<void*> addresses_;
};

class CudnnNorm final : public Norm {
 public:
  CudnnNorm(const NormShape& shape, uint32_t device, Plan plan)
      : s_(shape),
        device_(device),
        plan_(std::move(plan)),
        vector_(static_cast<size_t>(s_.channels()) * sizeof(float)) {
    Scratch scratch;
    plan_at_ = scratch.take(plan_.workspace());
    for (uint64_t& at : spare_) at = scratch.take(vector_);
    workspace_ = scratch.bytes();
  }
  uint64_t workspace() const override { return workspace_; }

  bool takes(const NormData& d) const override {
    uintptr_t all = 0;
    for (const void* p : {d.x, d.weight, d.dy, d.bias, static_cast<const void*>(d.result)}) all |= bits(p);
    for (const void* p : {d.mean, d.invstd, d.dweight, d.dbias, d.running_mean, d.running_var}) all |= bits(p);
    return all % kNormAlignment == 0;
  }

  void run(cudaStream_t stream, const NormData& d) const override {
    void* old[] = {piece(d.workspace, spare_[0]), piece(d.workspace, spare_[1])};
    auto or_spare = [&](void* given, int i) { return given != nullptr ? given : piece(d.workspace, spare_[i]); };
    Pack pack;
    pack.put(kNormX, d.x), pack.put(kNormWeight, d.weight);
    if (s_.kind == NormKind::kGradient) {
      pack.put(kNormDy, d.dy), pack.put(kNormDx, d.result), pack.put(kNormMean, d.mean);
      pack.put(kNormInvstd, d.invstd), pack.put(kNormDweight, or_spare(d.dweight, 2));
      pack.put(kNormDbias, or_spare(d.dbias, 3));
      return pack.run(plan_, device_, stream, piece(d.workspace, plan_at_));
    }
    pack.put(kNormY, d.result), pack.put(kNormBias, d.bias), pack.put(kNormMean, or_spare(d.mean, 2));
    pack.put(kNormInvstd, or_spare(d.invstd, 3)), pack.put(kNormEps, &d.eps);
    if (s_.running) {
      // Nobody says that blocks which read the old statistics are done when another writes the new ones.
      PG_CUDA(cudaMemcpyAsync(old[0], d.running_mean, vector_, cudaMemcpyDeviceToDevice, stream));
      PG_CUDA(cudaMemcpyAsync(old[1], d.running_var, vector_, cudaMemcpyDeviceToDevice, stream));
      pack.put(kNormMomentum, &d.momentum), pack.put(kNormOldMean, old[0]), pack.put(kNormOldVar, old[1]);
      pack.put(kNormNewMean, d.running_mean), pack.put(kNormNewVar, d.running_var);
    }
    pack.run(plan_, device_, stream, piece(d.workspace, plan_at_));
  }

 private:
  static uintptr_t bits(const void* p) { return reinterpret_cast<uintptr_t>(p); }

  NormShape s_;
  uint32_t device_;
  Plan plan_;
  size_t vector_;  // bytes of one by channel
  uint64_t plan_at_ = 0;
  uint64_t spare_[4] = {};  // the old running statistics; results that nobody wants
  uint64_t workspace_ = 0;
};

}  // namespace

std::unique_ptr<Norm> make_norm(const NormShape& shape, uint32_t device, const std::string& what) {
  return asked_for(what, [&]() -> std::unique_ptr<Norm> {
    Wanted wanted;
    wanted.exact = shape.dtype == PG_F32;
    wanted.workspace = workspace_limit_of(device), wanted.what = what;
    auto graph = std::make_shared<NormGraph>(shape);
    std::optional<Plan> plan = find_plan(device, graph->operations(), wanted, graph);
    if (plan) return std::make_unique<CudnnNorm>(shape, device, std::move(*plan));
    log_no_engine(what);
    return nullptr;
  });
}

}  // namespace cuda::dnn
