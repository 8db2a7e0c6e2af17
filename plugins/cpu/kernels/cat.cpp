// SPDX-License-Identifier: Apache-2.0
// cat along an axis and its gradient, slices written into tensors, one_hot.
#include <algorithm>

#include "copy.hpp"
#include "index_values.hpp"
#include "join.hpp"
#include "perigee/kernels/strided.hpp"
#include "storage.hpp"

namespace cpu {
namespace {

struct Cat final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    for (uint32_t i = 0; i < call.input_count(); i++) {
      if (storage_of(call.in(i)) != storage_of(call.out(0))) refuse(call);
    }
  }
  Cat(const pg::KernelCall& call, pg::Plan&) : axis_(call.axis("axis", call.out(0).rank)), join_(call, axis_) {}
  void launch(const pg_launch& launch) override {
    if (join_) return join_.run(launch);
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
  Join join_;
};
PG_KERNEL("cat", Cat);

// The parts of dy that cat made of its inputs.
struct CatGrad final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    for (uint32_t i = 0; i < call.output_count(); i++) {
      if (storage_of(call.out(i)) != storage_of(call.in(0))) refuse(call);
    }
  }
  CatGrad(const pg::KernelCall& call, pg::Plan&) : axis_(call.axis("axis", call.in(0).rank)) {}
  void launch(const pg_launch& launch) override {
    pg_tensor dy = at_address(*launch.inputs[0], launch.input[0]);
    int64_t bytes = kStorageBytes[storage_of(dy)];
    for (uint32_t i = 0; i < launch.output_count; i++) {
      const pg_tensor& x = *launch.outputs[i];
      if (launch.output[i].buffer == 0) continue;  // empty
      pg_tensor part = dy;
      part.shape = x.shape;
      copy_tensor(at_address(x, launch.output[i]), part);
      dy.offset += static_cast<uint64_t>(x.shape[axis_] * dy.stride[axis_] * bytes);
    }
  }

 private:
  int64_t axis_;
};
PG_KERNEL("cat_grad", CatGrad);

// A part of a tensor, by the attributes of slice: per axis a start, a stop, a step, and whether the axis is dropped.
class Slice {
 public:
  Slice(const pg::KernelCall& call, const pg_tensor& whole, const pg_tensor& part) {
    auto starts = call.attr<pg_ints>("starts"), steps = call.attr<pg_ints>("steps"), drop = call.attr<pg_ints>("drop");
    uint32_t kept = 0;
    for (uint32_t i = 0; i < whole.rank; i++) {
      int64_t start = i < starts.count ? starts.value[i] : 0, step = i < steps.count ? steps.value[i] : 1;
      if (start < 0) start += whole.shape[i];
      first_ += std::clamp<int64_t>(start, 0, whole.shape[i]) * whole.stride[i];
      if (i < drop.count && drop.value[i] != 0) continue;
      stride_[kept++] = whole.stride[i] * step;
    }
    if (kept != part.rank) pg::fail(PG_E_INTERNAL, pg::format("%s: the part's rank is not the slice's", call.op()));
  }
  // Writes `part` into `whole`, which carries its buffer.
  void write(pg_tensor whole, const pg_tensor& part) const {
    whole.offset += static_cast<uint64_t>(first_ * kStorageBytes[storage_of(whole)]);
    whole.rank = part.rank;
    whole.shape = part.shape;
    whole.stride = stride_;
    copy_tensor(whole, part);
  }

 private:
  int64_t first_ = 0, stride_[PG_MAX_RANK] = {};
};

struct SliceGrad final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
  }
  SliceGrad(const pg::KernelCall& call, pg::Plan&) : slice_(call, call.out(0), call.in(0)) {}
  void launch(const pg_launch& launch) override {
    if (launch.output[0].buffer == 0) return;
    pg_tensor out = at_address(*launch.outputs[0], launch.output[0]);
    fill_tensor(out, 0.0);
    if (launch.input[0].buffer != 0) slice_.write(out, at_address(*launch.inputs[0], launch.input[0]));
  }

 private:
  Slice slice_;
};
PG_KERNEL("slice_grad", SliceGrad);

struct SliceScatter final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (storage_of(call.in(0)) != storage_of(call.out(0)) || storage_of(call.in(1)) != storage_of(call.out(0)))
      refuse(call);
  }
  SliceScatter(const pg::KernelCall& call, pg::Plan&) : slice_(call, call.out(0), call.in(1)) {}
  void launch(const pg_launch& launch) override {
    if (launch.output[0].buffer == 0) return;
    pg_tensor out = at_address(*launch.outputs[0], launch.output[0]);
    copy_tensor(out, at_address(*launch.inputs[0], launch.input[0]));
    if (launch.input[1].buffer != 0) slice_.write(out, at_address(*launch.inputs[1], launch.input[1]));
  }

 private:
  Slice slice_;
};
PG_KERNEL("slice_scatter", SliceScatter);

struct OneHot final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (!is_index(call.in(0)) || storage_of(call.out(0)) != sI64 || !pg::is_contiguous(call.out(0))) refuse(call);
  }
  OneHot(const pg::KernelCall& call, pg::Plan& plan) : index_(call.in(0)), classes_(call.attr<int64_t>("classes")) {
    plan.workspace = index_.workspace();
  }
  void launch(const pg_launch& launch) override {
    const int64_t* index = index_.read(pg::input(launch, 0), pg::host_pointer(launch.workspace));
    index_.check(index, classes_, "one_hot", {"class", 0});
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
