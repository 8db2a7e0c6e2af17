// SPDX-License-Identifier: Apache-2.0
#include "cudnn/pool.hpp"

#include "cudnn/plan.hpp"
#include "cudnn/pool_graph.hpp"

namespace cuda::dnn {
namespace {

class CudnnPool final : public Pool {
 public:
  CudnnPool(uint32_t device, Plan plan) : device_(device), plan_(std::move(plan)) {}
  uint64_t workspace() const override { return plan_.workspace(); }
  void run(cudaStream_t stream, const void* x, void* y, void* workspace) const override {
    const int64_t uids[] = {kFull, kPooled};
    void* const addresses[] = {const_cast<void*>(x), y};
    plan_.run(device_, stream, uids, addresses, workspace);
  }

 private:
  uint32_t device_;
  Plan plan_;
};

}  // namespace

std::unique_ptr<Pool> make_pool(const PoolingShape& shape, uint32_t device, const std::string& what) {
  return asked_for(what, [&]() -> std::unique_ptr<Pool> {
    Wanted wanted;
    wanted.exact = shape.dtype == PG_F32 || shape.dtype == PG_F64;
    wanted.workspace = workspace_limit_of(device), wanted.what = what;
    auto graph = std::make_shared<PoolGraph>(shape);
    std::optional<Plan> plan = find_plan(device, graph->operations(), wanted, graph);
    if (plan) return std::make_unique<CudnnPool>(device, std::move(*plan));
    log_no_engine(what);
    return nullptr;
  });
}

}  // namespace cuda::dnn
