// SPDX-License-Identifier: Apache-2.0
// stack: each tensor a slice of the result.
#include "copy.hpp"
#include "join.hpp"

namespace cpu {
namespace {

struct Stack final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    for (uint32_t i = 0; i < call.input_count(); i++) {
      if (storage_of(call.in(i)) != storage_of(call.out(0))) refuse(call);
    }
  }
  Stack(const pg::KernelCall& call, pg::Plan&)
      : count_(pg::element_count(call.in(0))), join_(call, call.axis("axis", call.out(0).rank)) {
    const pg_tensor& out = call.out(0);
    int64_t axis = call.axis("axis", out.rank);
    step_ = out.stride[axis] * kStorageBytes[storage_of(out)];
    for (uint32_t i = 0; i < out.rank; i++) {
      if (i != axis) stride_[rank_++] = out.stride[i];
    }
  }
  void launch(const pg_launch& launch) override {
    if (count_ == 0) return;
    if (join_) return join_.run(launch);
    pg_tensor part = at_address(*launch.outputs[0], launch.output[0]);
    part.rank = static_cast<uint32_t>(rank_);
    part.stride = stride_;
    for (uint32_t i = 0; i < launch.input_count; i++) {
      part.shape = launch.inputs[i]->shape;
      copy_tensor(part, at_address(*launch.inputs[i], launch.input[i]));
      part.offset += static_cast<uint64_t>(step_);
    }
  }

 private:
  int64_t step_, stride_[PG_MAX_RANK], rank_ = 0, count_;
  Join join_;
};
PG_KERNEL("stack", Stack);

}  // namespace
}  // namespace cpu
