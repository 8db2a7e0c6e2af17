// SPDX-License-Identifier: Apache-2.0
// gather: y[..., i, ...] = x[..., index[..., i, ...], ...] along an axis; its gradient adds back.
#include "copy.hpp"
#include "index_values.hpp"
#include "scatter.hpp"

namespace cpu {
namespace {

struct Gather final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (!is_index(call.in(1)) || storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
    if (call.in(0).rank != call.in(1).rank) refuse(call);
  }
  Gather(const pg::KernelCall& call, pg::Plan& plan)
      : index_(CompactIndex(call.in(1)).read),
        bytes_(kStorageBytes[storage_of(call.out(0))]),
        axis_(static_cast<uint32_t>(call.axis("axis", call.in(0).rank))) {
    CompactIndex index(call.in(1));
    plan_ = scatter_plan(call.in(0), call.out(0), index.shown, axis_);
    plan.workspace = index_.workspace();
  }
  void launch(const pg_launch& launch) override {
    const int64_t* index = index_.read(pg::input(launch, 1), pg::host_pointer(launch.workspace));
    index_.check(index, plan_.limit, "gather", {"index", axis_ + 1});
    gather_elements(plan_, bytes_, pg::input(launch, 0), pg::output(launch, 0), index);
  }

 private:
  IndexValues index_;
  int bytes_;
  uint32_t axis_;
  ScatterPlan plan_;
};
PG_KERNEL("gather", Gather);

// Each element is summed by one thread, in order; 16-bit ones in float32.
struct GatherGrad final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (!is_index(call.in(1)) || storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
    if (!is_float(storage_of(call.out(0))) || call.in(1).rank != call.out(0).rank) refuse(call);
  }
  GatherGrad(const pg::KernelCall& call, pg::Plan& plan)
      : index_(CompactIndex(call.in(1)).read),
        storage_(storage_of(call.out(0))),
        axis_(static_cast<uint32_t>(call.axis("axis", call.out(0).rank))) {
    CompactIndex index(call.in(1));
    const pg_tensor &dy = call.in(0), &dx = call.out(0);
    wide_ = storage_ == sF16 || storage_ == sBF16;
    DenseLike source(dy, PG_F32), target(dx, PG_F32);
    plan_ = wide_ ? scatter_plan(target.tensor, source.tensor, index.shown, axis_)
                  : scatter_plan(dx, dy, index.shown, axis_);
    index_bytes_ = (index_.workspace() + 63) / 64 * 64;
    source_bytes_ = wide_ ? static_cast<uint64_t>(pg::element_count(dy)) * 4 : 0;
    plan.workspace = index_bytes_ + source_bytes_ + (wide_ ? static_cast<uint64_t>(pg::element_count(dx)) * 4 : 0);
  }

  void launch(const pg_launch& launch) override {
    char* scratch = pg::host_pointer<char>(launch.workspace);
    const int64_t* index = index_.read(pg::input(launch, 1), scratch);
    index_.check(index, plan_.limit, "gather_grad", {"index", axis_ + 1});
    if (launch.output[0].buffer == 0) return;
    pg_tensor dx = at_address(*launch.outputs[0], launch.output[0]);
    if (!wide_) {
      fill_tensor(dx, 0);
      return scatter_fold(plan_, storage_, Fold::add, pg::output(launch, 0), pg::input(launch, 0), index);
    }
    char *source = scratch + index_bytes_, *sums = source + source_bytes_;
    DenseLike from(*launch.inputs[0], PG_F32), to(dx, PG_F32);
    pg_tensor whole = at_address(to.tensor, {reinterpret_cast<uint64_t>(sums), 0});
    if (source_bytes_ > 0) {
      copy_tensor(at_address(from.tensor, {reinterpret_cast<uint64_t>(source), 0}),
                  at_address(*launch.inputs[0], launch.input[0]));
    }
    fill_tensor(whole, 0);
    scatter_fold(plan_, sF32, Fold::add, sums, source, index);
    copy_tensor(dx, whole);
  }

 private:
  IndexValues index_;
  Storage storage_;
  uint32_t axis_;
  bool wide_;
  ScatterPlan plan_;
  uint64_t index_bytes_, source_bytes_;
};
PG_KERNEL("gather_grad", GatherGrad);

}  // namespace
}  // namespace cpu
