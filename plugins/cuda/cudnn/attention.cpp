// SPDX-License-Identifier: Apache-2.0
#include "cudnn/attention.hpp"

#include <iterator>
#include <limits>

#include "cudnn/attention_graph.hpp"
#include "cudnn/plan.hpp"
#include "scratch.hpp"

namespace cuda::dnn {
namespace {

// Of a score that is not seen. Not infinite: a difference of infinities would be NaN.
constexpr float kLowestScore = std::numeric_limits<float>::lowest();

class CudnnAttention final : public Attention {
 public:
  CudnnAttention(const AttentionShape& shape, uint32_t device, Plan plan)
      : causal_(shape.causal), device_(device), plan_(std::move(plan)) {
    Scratch scratch;
    plan_at_ = scratch.take(plan_.workspace());
    spare_at_ = scratch.take(static_cast<uint64_t>(shape.q[0] * shape.q[1] * shape.q[2]) * sizeof(float));
    workspace_ = scratch.bytes();
  }
  uint64_t workspace() const override { return workspace_; }
  bool run(cudaStream_t stream, const AttentionData& d) const override {
    uintptr_t all = 0;
    for (const void* p : {d.q, d.k, d.v, static_cast<const void*>(d.out)}) all |= reinterpret_cast<uintptr_t>(p);
    void* lse = d.lse != nullptr ? d.lse : piece(d.workspace, spare_at_);
    all |= reinterpret_cast<uintptr_t>(lse);
    if (all % kAttentionAlignment != 0) return false;
    float scale = d.scale, lowest = kLowestScore;
    const int64_t uids[] = {kQ, kK, kV, kOut, kLse, kScale, kLowest};
    void* const addresses[] = {
        const_cast<void*>(d.q), const_cast<void*>(d.k), const_cast<void*>(d.v), d.out, lse, &scale, &lowest};
    const size_t count = std::size(uids) - (causal_ ? 0 : 1);
    plan_.run(device_, stream, {uids, count}, {addresses, count}, piece(d.workspace, plan_at_));
    return true;
  }

 private:
  bool causal_;
  uint32_t device_;
  Plan plan_;
  uint64_t plan_at_ = 0, spare_at_ = 0, workspace_ = 0;  // spare: an lse that nobody wants
};

}  // namespace

std::unique_ptr<Attention> make_attention(const AttentionShape& shape, uint32_t device, const std::string& what) {
  return asked_for(what, [&]() -> std::unique_ptr<Attention> {
    Wanted wanted;
    wanted.workspace = workspace_limit_of(device), wanted.what = what;
    auto graph = std::make_shared<AttentionGraph>(shape);
    std::optional<Plan> plan = find_plan(device, graph->operations(), wanted, graph);
    if (plan) return std::make_unique<CudnnAttention>(shape, device, std::move(*plan));
    log_no_engine(what);
    return nullptr;
  });
}

}  // namespace cuda::dnn
