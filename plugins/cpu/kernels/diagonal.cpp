// SPDX-License-Identifier: Apache-2.0
// diagonal_grad and diagonal_scatter: a diagonal written into zeros, or into a copy of x.
#include "copy.hpp"
#include "storage.hpp"

namespace cpu {
namespace {

struct PutDiagonal final : pg::Kernel {
  static bool into_zeros(const pg::KernelCall& call) { return call.is("diagonal_grad"); }
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    for (uint32_t i = 0; i < (into_zeros(call) ? 1u : 2u); i++) {
      if (storage_of(call.in(i)) != storage_of(call.out(0))) refuse(call);
    }
  }
  // The diagonal's strides in the result: those of the other axes in order, then one step down and to the right.
  PutDiagonal(const pg::KernelCall& call, pg::Plan&) : zeros_(into_zeros(call)) {
    const pg_tensor& y = call.out(0);
    const int64_t a = call.axis("axis1", y.rank), b = call.axis("axis2", y.rank), offset = call.attr<int64_t>("offset");
    for (uint32_t i = 0; i < y.rank; i++) {
      if (i != a && i != b) stride_[rank_++] = y.stride[i];
    }
    stride_[rank_++] = y.stride[a] + y.stride[b];
    // Of a diagonal that the matrix does not reach nothing is written, wherever it would begin.
    if (offset < 0 && offset > -y.shape[a]) first_ = -offset * y.stride[a];
    if (offset > 0 && offset < y.shape[b]) first_ = offset * y.stride[b];
  }
  void launch(const pg_launch& launch) override {
    if (launch.output[0].buffer == 0) return;
    pg_tensor y = at_address(*launch.outputs[0], launch.output[0]);
    if (zeros_)
      fill_tensor(y, 0.0);
    else
      copy_tensor(y, at_address(*launch.inputs[0], launch.input[0]));
    const uint32_t at = zeros_ ? 0 : 1;
    if (launch.input[at].buffer == 0) return;
    const pg_tensor part = at_address(*launch.inputs[at], launch.input[at]);
    y.offset += static_cast<uint64_t>(first_ * kStorageBytes[storage_of(y)]);
    y.rank = part.rank;
    y.shape = part.shape;
    y.stride = stride_;
    copy_tensor(y, part);
  }

 private:
  bool zeros_;
  int64_t first_ = 0, stride_[PG_MAX_RANK] = {};
  uint32_t rank_ = 0;
};
PG_KERNEL("diagonal_grad", PutDiagonal);
PG_KERNEL("diagonal_scatter", PutDiagonal);

}  // namespace
}  // namespace cpu
