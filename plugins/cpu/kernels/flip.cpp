// SPDX-License-Identifier: Apache-2.0
// flip and roll_axes: copies of x read backwards, and of the parts that change places.
#include <algorithm>

#include "copy.hpp"
#include "perigee/kernels/strided.hpp"
#include "storage.hpp"

namespace cpu {
namespace {

void check_moved(const pg::KernelCall& call) {
  require_all_dense(call);
  if (storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
}

struct Flip final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { check_moved(call); }
  Flip(const pg::KernelCall& call, pg::Plan&) {
    const pg_tensor& x = call.in(0);
    auto axes = call.attr<pg_ints>("axes");
    std::copy_n(x.stride, x.rank, stride_);
    for (int64_t i = 0; i < axes.count && x.rank > 0; i++) {
      int64_t axis = axes.value[i] < 0 ? axes.value[i] + x.rank : axes.value[i];
      start_ += (x.shape[axis] - 1) * x.stride[axis] * kStorageBytes[storage_of(x)];
      stride_[axis] = -x.stride[axis];
    }
  }
  void launch(const pg_launch& launch) override {
    if (launch.output[0].buffer == 0) return;
    pg_tensor x = at_address(*launch.inputs[0], launch.input[0]);
    x.offset += static_cast<uint64_t>(start_);
    x.stride = stride_;
    copy_tensor(at_address(*launch.outputs[0], launch.output[0]), x);
  }

 private:
  int64_t start_ = 0, stride_[PG_MAX_RANK] = {};
};
PG_KERNEL("flip", Flip);

struct Roll final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { check_moved(call); }
  Roll(const pg::KernelCall& call, pg::Plan&) {
    const pg_tensor& x = call.in(0);
    auto shifts = call.attr<pg_ints>("shifts");
    for (int64_t i = 0; i < shifts.count; i++) {
      int64_t n = x.shape[i];
      if (n > 0) by_[i] = (shifts.value[i] % n + n) % n;
    }
  }
  void launch(const pg_launch& launch) override {
    if (launch.output[0].buffer == 0) return;
    pg_tensor out = at_address(*launch.outputs[0], launch.output[0]),
              x = at_address(*launch.inputs[0], launch.input[0]);
    int64_t shape[PG_MAX_RANK];
    std::copy_n(out.shape, out.rank, shape);
    out.shape = x.shape = shape;
    move(out, x, shape, 0);
  }

 private:
  // Axes from `axis` on; those before it are parts already.
  void move(pg_tensor out, pg_tensor x, int64_t* shape, uint32_t axis) const {
    while (axis < out.rank && by_[axis] == 0) axis++;
    if (axis == out.rank) return copy_tensor(out, x);
    int64_t n = shape[axis], by = by_[axis], bytes = kStorageBytes[storage_of(out)];
    pg_tensor later = out, end = x;
    later.offset += static_cast<uint64_t>(by * out.stride[axis] * bytes);
    end.offset += static_cast<uint64_t>((n - by) * x.stride[axis] * bytes);
    shape[axis] = by;
    move(out, end, shape, axis + 1);
    shape[axis] = n - by;
    move(later, x, shape, axis + 1);
    shape[axis] = n;
  }

  int64_t by_[PG_MAX_RANK] = {};
};
PG_KERNEL("roll_axes", Roll);

}  // namespace
}  // namespace cpu
