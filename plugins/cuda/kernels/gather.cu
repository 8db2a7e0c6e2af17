// SPDX-License-Identifier: Apache-2.0
// gather: y[..., i, ...] = x[..., index[..., i, ...], ...] along an axis; its gradient adds back. The index may be
// shorter than x along the other axes.
#include "kernels/index_check.hpp"
#include "kernels/places.cuh"
#include "kernels/sorted_sum.hpp"
#include "kernels/sums.hpp"
#include "units.hpp"

namespace cuda {
namespace {

struct Gathered {
  Walk<3> walk;  // y, x without the axis, index
  int64_t size, step;
  uint32_t index_dtype;
};

template <class E>
__global__ void __launch_bounds__(kThreads)
    gather_elements(const __grid_constant__ Gathered g, const E* x, const void* index, E* y,
                    const __grid_constant__ FaultSite site) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < g.walk.count; p += stride) {
    int64_t at[3];
    g.walk.locate(p, at);
    int64_t value = load_index(index, g.index_dtype, at[2]);
    if (is_outside(value, g.size)) {
      note_fault(site, value, p);
      continue;
    }
    y[at[0]] = x[at[1] + value * g.step];
  }
}

class Gather final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kAny);
    check_index(call, 1);
    if (pg::dtype_of(call.in(0)) != pg::dtype_of(call.out(0))) pg::fail_support("the result has another dtype");
    if (call.in(0).rank != call.in(1).rank) pg::fail_support("x and index have different numbers of axes");
  }
  Gather(const pg::KernelCall& call, pg::Plan&) : bytes_(element_bytes(call.in(0))) {
    const pg_tensor &x = call.in(0), &index = call.in(1);
    int64_t axis = call.axis("axis", x.rank);
    named_ = static_cast<uint32_t>(axis) + 1;
    Others others(x, axis);
    g_.walk = walk_together<3>(index, {call.out(0).stride, others.stride, index.stride});
    g_.size = size_along(x, axis);
    g_.step = others.step;
    g_.index_dtype = pg::dtype_of(index);
  }
  void run(const Launch& launch) override {
    FaultSite site = launch.fault_site(FaultKind::kIndex, g_.size, *launch.raw.inputs[1], named_);
    with_element(bytes_, [&](auto tag) {
      using E = typename decltype(tag)::type;
      launch(grid_for(g_.walk.count), gather_elements<E>, g_, launch.in<E>(0), launch.in(1), launch.out<E>(0), site);
    });
  }

 private:
  uint32_t bytes_, named_ = 0;  // named_: the axis in messages
  Gathered g_;
};
PG_KERNEL("gather", Gather);

// ---- gradient ----

struct Scattered {
  IndexOperand index;
  // Of dx, which is contiguous, by axis. `limit` is the size of the index, and strides of `axis` are 0.
  Extent extent[PG_MAX_RANK];
  int64_t limit[PG_MAX_RANK], index_stride[PG_MAX_RANK], dy_stride[PG_MAX_RANK];
  int32_t rank, axis;
  int64_t length, index_step, dy_step, total;  // `length` of the index along the axis
  bool narrow;
};

// One owner for each element of dx, which looks through the indices of its line.
template <class S>
__global__ void __launch_bounds__(kThreads) scatter_lines(const __grid_constant__ Scattered s, const S* dy, S* dx) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < s.total; p += stride) {
    int64_t rest = p, own = 0, at_index = 0, at_dy = 0;
    bool inside = true;
    for (int d = s.rank - 1; d >= 0; d--) {
      keep_loop(d);
      int64_t place = rest;
      rest = s.extent[d].split(place, s.narrow);
      if (d == s.axis) own = place;
      inside = inside && (d == s.axis || place < s.limit[d]);
      at_index += place * s.index_stride[d];
      at_dy += place * s.dy_stride[d];
    }
    GradSum<S> sum = 0;
    if (inside) {
      for (int64_t j = 0; j < s.length; j++) {
        int64_t value = load_index(s.index.data, s.index.dtype, at_index + j * s.index_step);
        if (value == own) sum += to_sum(dy[at_dy + j * s.dy_step]);
      }
    }
    dx[p] = from_sum<S>(sum);
  }
}

class GatherGrad final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kNumbers);
    check_index(call, 1);
    const pg_tensor &index = call.in(1), &dx = call.out(0);
    with_float(pg::dtype_of(dx), [](auto) {});
    if (pg::dtype_of(call.in(0)) != pg::dtype_of(dx)) pg::fail_support("the result has another dtype");
    if (!pg::is_contiguous(dx)) pg::fail_support("the result must be contiguous");
    if (index.rank != dx.rank) pg::fail_support("x and index have different numbers of axes");
    int64_t length = size_along(index, call.axis("axis", dx.rank));
    if (!is_scanned(length, pg::element_count(dx))) SortedSum::check_entries(pg::element_count(index));
  }
  GatherGrad(const pg::KernelCall& call, pg::Plan& plan) : dtype_(pg::dtype_of(call.out(0))) {
    const pg_tensor &dy = call.in(0), &index = call.in(1), &dx = call.out(0);
    int64_t axis = call.axis("axis", dx.rank);
    named_ = static_cast<uint32_t>(axis) + 1;
    size_ = size_along(dx, axis);
    total_ = pg::element_count(dx);
    index_ = IndexOperand(index);
    scanned_ = is_scanned(size_along(index, axis), total_);
    if (scanned_) {
      prepare_scan(dy, index, dx, axis);
      return;
    }
    numbered_ = number_of(index, dx, axis);
    sorted_ = SortedSum(call, dtype_, total_, Walk<1>(), walk_of(dy), Walk<1>());
    plan.workspace = sorted_.workspace();
  }

  void run(const Launch& launch) override {
    FaultSite site = launch.fault_site(FaultKind::kIndex, size_, *launch.raw.inputs[1], named_);
    IndexOperand index = index_;
    index.data = launch.in(1);
    if (total_ > 0 && !scanned_) return sum_sorted(launch, site);
    check_indices(launch, index, site);
    Scattered s = scan_;
    s.index = index;
    with_float(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      launch(grid_for(total_), scatter_lines<S>, s, launch.in<S>(0), launch.out<S>(0));
    });
  }

 private:
  void prepare_scan(const pg_tensor& dy, const pg_tensor& index, const pg_tensor& dx, int64_t axis) {
    Others from_index(index, axis), from_dy(dy, axis);
    scan_.rank = static_cast<int32_t>(dx.rank);
    scan_.axis = static_cast<int32_t>(axis);
    for (uint32_t i = 0; i < dx.rank; i++) {
      scan_.extent[i] = Extent(dx.shape[i]);
      scan_.limit[i] = index.shape[i];
      scan_.index_stride[i] = from_index.stride[i];
      scan_.dy_stride[i] = from_dy.stride[i];
    }
    scan_.length = size_along(index, axis);
    scan_.index_step = from_index.step;
    scan_.dy_step = from_dy.step;
    scan_.total = total_;
    scan_.narrow = total_ < kNarrow;
  }
  void sum_sorted(const Launch& launch, const FaultSite& site) const {
    SortPairs rooms = sorted_.rooms(launch.workspace());
    launch(grid_for(index_.count()), number_places, numbered_, launch.in(1), rooms.keys[0], rooms.values[0], site);
    auto bytes = static_cast<size_t>(total_ * pg::dtype_bytes(dtype_));
    PG_CUDA(cudaMemsetAsync(launch.out(0), 0, bytes, launch.native()));
    sorted_.run(launch, launch.in(0), launch.out(0));
  }

  uint32_t dtype_, named_ = 0;  // named_: the axis in messages
  int64_t size_ = 1, total_ = 0;
  IndexOperand index_;
  bool scanned_ = true;
  Scattered scan_;
  Numbered numbered_{};
  SortedSum sorted_;
};
PG_KERNEL("gather_grad", GatherGrad);

}  // namespace
}  // namespace cuda
