// SPDX-License-Identifier: Apache-2.0
// cat along an axis and its gradient, slices written into tensors, one_hot.
#include <algorithm>

#include "index_operand.hpp"
#include "kernels/part_copy.cuh"

namespace cuda {
namespace {

void check_same_dtype(const pg::KernelCall& call) {
  check_dtypes(call, kAny);
  uint32_t dtype = pg::dtype_of(call.out(0));
  for (uint32_t i = 0; i < call.output_count(); i++) {
    if (pg::dtype_of(call.out(i)) != dtype) pg::fail_support("the tensors' dtypes differ");
  }
}

// Parts of one tensor behind each other along an axis, each beside a tensor of its own: cat copies these into the
// parts, and cat_grad the parts into these.
class Joined final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_same_dtype(call);
    uint32_t own = call.is("cat") ? call.input_count() : 1;  // of cat_grad the others only say their shapes
    for (uint32_t i = 0; i < own; i++) {
      if (pg::dtype_of(call.in(i)) != pg::dtype_of(call.out(0))) pg::fail_support("the tensors' dtypes differ");
    }
  }
  Joined(const pg::KernelCall& call, pg::Plan&) : joins_(call.is("cat")) {
    const pg_tensor& whole = joins_ ? call.out(0) : call.in(0);
    auto axis = static_cast<uint32_t>(call.axis("axis", whole.rank));
    uint32_t bytes = element_bytes(whole), count = joins_ ? call.input_count() : call.output_count();
    copy_ = PartCopy(bytes);
    int64_t start = 0;
    for (uint32_t i = 0; i < count; i++) {
      const pg_tensor& part = joins_ ? call.in(i) : call.out(i);
      if (part.rank != whole.rank || pg::element_count(part) == 0) continue;
      if (joins_)
        copy_.add(part.rank, part.shape, whole.stride, part.stride);
      else
        copy_.add(part.rank, part.shape, part.stride, whole.stride);
      parts_.push_back({i, start});
      start += part.shape[axis] * whole.stride[axis] * bytes;
    }
  }
  void run(const Launch& launch) override {
    char* whole = const_cast<char*>(joins_ ? launch.out<char>(0) : launch.in<char>(0));
    copy_.run(launch, [&](size_t i) {
      const Part& part = parts_[i];
      if (joins_) return PartCopy::Place{whole + part.start, launch.in(part.number)};
      return PartCopy::Place{launch.out(part.number), whole + part.start};
    });
  }

 private:
  struct Part {
    uint32_t number;
    int64_t start;  // in the whole, in bytes
  };
  bool joins_;
  PartCopy copy_;
  std::vector<Part> parts_;
};
PG_KERNEL("cat", Joined);
PG_KERNEL("cat_grad", Joined);

// The part of a tensor that the attributes of slice show: per axis a start, a step, and whether the axis is dropped.
class Sliced {
 public:
  Sliced(const pg::KernelCall& call, const pg_tensor& whole, const pg_tensor& part) : copy_(element_bytes(whole)) {
    auto starts = call.attr<pg_ints>("starts"), steps = call.attr<pg_ints>("steps"), drop = call.attr<pg_ints>("drop");
    int64_t stride[PG_MAX_RANK] = {};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < whole.rank; i++) {
      int64_t start = i < starts.count ? starts.value[i] : 0, step = i < steps.count ? steps.value[i] : 1;
      if (start < 0) start += whole.shape[i];
      first_ += std::clamp<int64_t>(start, 0, whole.shape[i]) * whole.stride[i] * element_bytes(whole);
      if (i < drop.count && drop.value[i] != 0) continue;
      // A step beyond an axis is of a part of one element at most.
      stride[kept++] = whole.stride[i] * std::min(step, whole.shape[i]);
    }
    if (kept != part.rank) pg::fail(PG_E_INTERNAL, pg::format("%s: the part's rank is not the slice's", call.op()));
    if (pg::element_count(part) > 0) copy_.add(part.rank, part.shape, stride, part.stride);
  }
  void write(const Launch& launch, void* whole, const void* part) const {
    copy_.run(launch, [&](size_t) { return PartCopy::Place{static_cast<char*>(whole) + first_, part}; });
  }

 private:
  int64_t first_ = 0;
  PartCopy copy_;
};

class SliceGrad final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_same_dtype(call);
    if (pg::dtype_of(call.in(0)) != pg::dtype_of(call.out(0))) pg::fail_support("the tensors' dtypes differ");
    if (!pg::is_contiguous(call.out(0))) pg::fail_support("the result must be contiguous");
  }
  SliceGrad(const pg::KernelCall& call, pg::Plan&)
      : slice_(call, call.out(0), call.in(0)),
        bytes_(static_cast<size_t>(pg::element_count(call.out(0))) * element_bytes(call.out(0))) {}
  void run(const Launch& launch) override {
    if (bytes_ == 0) return;
    PG_CUDA(cudaMemsetAsync(launch.out(0), 0, bytes_, launch.native()));
    slice_.write(launch, launch.out(0), launch.in(0));
  }

 private:
  Sliced slice_;
  size_t bytes_;
};
PG_KERNEL("slice_grad", SliceGrad);

class SliceScatter final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_same_dtype(call);
    for (uint32_t i = 0; i < 2; i++) {
      if (pg::dtype_of(call.in(i)) != pg::dtype_of(call.out(0))) pg::fail_support("the tensors' dtypes differ");
    }
  }
  SliceScatter(const pg::KernelCall& call, pg::Plan&)
      : whole_(element_bytes(call.out(0))), slice_(call, call.out(0), call.in(1)) {
    const pg_tensor& y = call.out(0);
    if (pg::element_count(y) > 0) whole_.add(y.rank, y.shape, y.stride, call.in(0).stride);
  }
  void run(const Launch& launch) override {
    whole_.run(launch, [&](size_t) { return PartCopy::Place{launch.out(0), launch.in(0)}; });
    slice_.write(launch, launch.out(0), launch.in(1));
  }

 private:
  PartCopy whole_;
  Sliced slice_;
};
PG_KERNEL("slice_scatter", SliceScatter);

// ---- one_hot ----

struct Classes {
  IndexOperand index;
  Extent classes;
  int64_t total;
  bool narrow;
};

__global__ void __launch_bounds__(kThreads)
    mark_classes(const __grid_constant__ Classes c, int64_t* y, const __grid_constant__ FaultSite site) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < c.total; p += stride) {
    int64_t own = p, i = c.classes.split(own, c.narrow), value = c.index[i];
    y[p] = value == own ? 1 : 0;
    if (own == 0 && is_outside(value, c.classes.size)) note_fault(site, value, i);
  }
}

class OneHot final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, PG_M_INT);
    if (pg::dtype_of(call.out(0)) != PG_I64 || !pg::is_contiguous(call.out(0))) {
      pg::fail_support("the result must be contiguous int64");
    }
  }
  OneHot(const pg::KernelCall& call, pg::Plan&) {
    auto classes = call.attr<int64_t>("classes");
    c_.index = IndexOperand(call.in(0));
    c_.classes = Extent(classes);
    c_.total = c_.index.count() * classes;
    c_.narrow = c_.total < kNarrow;
  }
  void run(const Launch& launch) override {
    Classes c = c_;
    c.index.data = launch.in(0);
    FaultSite site = launch.fault_site(FaultKind::kClass, c.classes.size, *launch.raw.inputs[0]);
    launch(grid_for(c.total), mark_classes, c, launch.out<int64_t>(0), site);
  }

 private:
  Classes c_;
};
PG_KERNEL("one_hot", OneHot);

}  // namespace
}  // namespace cuda
