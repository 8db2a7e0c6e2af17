// SPDX-License-Identifier: Apache-2.0
// cat along an axis, slice_grad (a slice written into zeros), one_hot.
#include "copy.hpp"
#include "index_values.hpp"
#include "perigee/kernels/strided.hpp"
#include "storage.hpp"

namespace cpu {
namespace {

struct Cat final : pg::Kernel {
  static void supports(const pg::Call& call) {
    require_all_dense(call);
    for (uint32_t i = 0; i < call.input_count(); i++) {
      if (storage_of(call.in(i)) != storage_of(call.out(0))) refuse(call);
    }
  }
  Cat(const pg::Call& call, pg::Plan&) : axis_(call.axis("axis", call.out(0).rank)) {}
  void launch(const pg_launch& launch) override {
    pg_tensor out = at_address(*launch.outputs[0], launch.output[0]);
    int64_t bytes = kStorageBytes[storage_of(out)];
    for (uint32_t i = 0; i < launch.input_count; i++) {
      const pg_tensor& x = *launch.inputs[i];
      if (launch.input[i].buffer == 0 || x.rank != out.rank) continue;  // empty
      pg_tensor part = out;
      part.shape = x.shape;
      copy_tensor(part, at_address(x, launch.input[i]));
      out.offset += static_cast<uint64_t>(x.shape[axis_] * out.stride[axis_] * bytes);
    }
  }

 private:
  int64_t axis_;
};
PG_KERNEL("cat", Cat);

// The attributes are those of slice: per axis start, stop, step, and whether the axis is dropped.
struct SliceGrad final : pg::Kernel {
  static void supports(const pg::Call& call) {
    require_all_dense(call);
    if (storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
  }
  SliceGrad(const pg::Call& call, pg::Plan&) {
    const pg_tensor& out = call.out(0);
    auto starts = call.attr<pg_ints>("starts"), steps = call.attr<pg_ints>("steps"), drop = call.attr<pg_ints>("drop");
    uint32_t kept = 0;
    for (uint32_t i = 0; i < out.rank; i++) {
      bool given = i < starts.count;
      int64_t start = given ? starts.value[i] : 0, step = i < steps.count ? steps.value[i] : 1;
      if (start < 0) start = start + out.shape[i] < 0 ? 0 : start + out.shape[i];
      if (start > out.shape[i]) start = out.shape[i];
      first_ += start * out.stride[i];
      if (i < drop.count && drop.value[i] != 0) continue;
      stride_[kept++] = out.stride[i] * step;
    }
    if (kept != call.in(0).rank) pg::fail(PG_E_INTERNAL, "slice_grad: the gradient's rank is not that of the slice");
  }
  void launch(const pg_launch& launch) override {
    if (launch.output[0].buffer == 0) return;
    pg_tensor out = at_address(*launch.outputs[0], launch.output[0]);
    fill_tensor(out, 0.0);
    if (launch.input[0].buffer == 0) return;
    pg_tensor dy = at_address(*launch.inputs[0], launch.input[0]);
    out.offset += static_cast<uint64_t>(first_ * kStorageBytes[storage_of(out)]);
    out.rank = dy.rank;
    out.shape = dy.shape;
    out.stride = stride_;
    copy_tensor(out, dy);
  }

 private:
  int64_t first_ = 0, stride_[PG_MAX_RANK] = {};
};
PG_KERNEL("slice_grad", SliceGrad);

struct OneHot final : pg::Kernel {
  static void supports(const pg::Call& call) {
    require_all_dense(call);
    if (!is_index(call.in(0)) || storage_of(call.out(0)) != sI64 || !pg::is_contiguous(call.out(0))) refuse(call);
  }
  OneHot(const pg::Call& call, pg::Plan& plan) : index_(call.in(0)), classes_(call.attr<int64_t>("classes")) {
    plan.workspace = index_.workspace();
  }
  void launch(const pg_launch& launch) override {
    const int64_t* index = index_.read(pg::input(launch, 0), pg::host_pointer(launch.workspace));
    index_.check(index, classes_, "one_hot", "class");
    auto* out = pg::output<int64_t>(launch, 0);
    if (index_.count() == 0 || classes_ == 0) return;
    fill_tensor(at_address(*launch.outputs[0], launch.output[0]), 0.0);
    for (int64_t i = 0; i < index_.count(); i++) out[i * classes_ + index[i]] = 1;
  }

 private:
  IndexValues index_;
  int64_t classes_;
};
PG_KERNEL("one_hot", OneHot);

}  // namespace
}  // namespace cpu
