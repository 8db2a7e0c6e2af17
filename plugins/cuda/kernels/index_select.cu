// SPDX-License-Identifier: Apache-2.0
// Whole slices by index along one axis: y[b, i, a] = x[b, index[i], a]. embedding is this along axis 0 of its weight,
// with an index of any shape. The gradients sum slices back: dx[b, index[i], a] += dy[b, i, a].
#include <algorithm>

#include "kernels/index_check.hpp"
#include "kernels/sorted_sum.hpp"
#include "kernels/sums.hpp"
#include "units.hpp"

namespace cuda {
namespace {

__global__ void __launch_bounds__(kThreads)
    check(const __grid_constant__ IndexOperand index, const __grid_constant__ FaultSite site) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < index.walk.count; i += stride) {
    int64_t value = index[i];
    if (is_outside(value, site.limit)) note_fault(site, value, i);
  }
}

// ---- selection ----

// Counts and strides in units.
struct Select {
  IndexOperand index;
  Walk<1> before, inner;
  Extent slice, indices;  // units in a slice; slices in a `before`
  int64_t size = 1, step = 0, total = 0;
  bool narrow = true;
};

template <class U>
__global__ void __launch_bounds__(kThreads)
    select_slices(const __grid_constant__ Select s, const U* x, U* y, const __grid_constant__ FaultSite site) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < s.total; p += stride) {
    int64_t a = p, b, i = s.slice.split(a, s.narrow);
    b = s.indices.split(i, s.narrow);
    int64_t value = s.index[i];
    if (is_outside(value, s.size)) {
      note_fault(site, value, i);
      continue;
    }
    y[p] = x[s.before.offset(b) + value * s.step + s.inner.offset(a)];
  }
}

class IndexSelect final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kAny);
    check_index(call, 1);
    if (!pg::is_contiguous(call.out(0))) pg::fail_support("the result must be contiguous");
    if (pg::dtype_of(call.in(0)) != pg::dtype_of(call.out(0))) pg::fail_support("the result has another dtype");
  }
  IndexSelect(const pg::KernelCall& call, pg::Plan&) : fault_(index_fault(call)), bytes_(element_bytes(call.in(0))) {
    const pg_tensor& x = call.in(0);
    uint32_t axis = call.is("embedding") ? 0 : static_cast<uint32_t>(call.axis("axis", x.rank));
    named_ = named_axis(call, axis);
    s_.index = IndexOperand(call.in(1));
    s_.size = x.rank == 0 ? 1 : x.shape[axis];
    step_ = x.rank == 0 ? 0 : x.stride[axis];
    int64_t stride[1][PG_MAX_RANK] = {}, inner_stride[1][PG_MAX_RANK] = {};
    for (uint32_t i = 0; i < axis; i++) stride[0][i] = x.stride[i];
    for (uint32_t i = axis + 1; i < x.rank; i++) inner_stride[0][i - axis - 1] = x.stride[i];
    before_ = pg::make_nest<1>(axis, x.shape, stride, false);
    inner_ = pg::make_nest<1>(x.rank == 0 ? 0 : x.rank - axis - 1, x.shape + axis + 1, inner_stride, false);
    // Only rows without gaps are moved in more than elements.
    uint64_t numbers = static_cast<uint64_t>(step_);
    for (int i = 0; i < before_.rank; i++) numbers |= static_cast<uint64_t>(before_.stride[0][i]);
    for (int i = 0; i + 1 < inner_.rank; i++) numbers |= static_cast<uint64_t>(inner_.stride[0][i]);
    bool rows = inner_.rank > 0 && inner_.inner_stride(0) == 1;
    numbers |= rows ? static_cast<uint64_t>(inner_.inner()) : 1;
    unit_ = std::max(bytes_, unit_of(numbers * bytes_));
    set_unit(s_, unit_);
  }

  void run(const Launch& launch) override {
    FaultSite site = launch.fault_site(fault_, s_.size, *launch.raw.inputs[1], named_);
    const void* x = launch.in(0);
    void* y = launch.out(0);
    Select s = s_;
    s.index.data = launch.in(1);
    if (s.total == 0) return check_indices(launch, s.index, site);
    uint32_t unit = unit_of(reinterpret_cast<uint64_t>(x) | reinterpret_cast<uint64_t>(y) | unit_);
    if (unit != unit_) set_unit(s, unit);
    with_unit(unit, [&](auto tag) {
      using U = typename decltype(tag)::type;
      launch(grid_for(s.total), select_slices<U>, s, static_cast<const U*>(x), static_cast<U*>(y), site);
    });
  }

 private:
  void set_unit(Select& s, uint32_t unit) const {
    int64_t factor = unit / bytes_;
    pg::Nest<1> before = before_, inner = inner_;
    for (int i = 0; i < before.rank; i++) before.stride[0][i] /= factor;
    for (int i = 0; i + 1 < inner.rank; i++) inner.stride[0][i] /= factor;
    if (inner.rank > 0) inner.shape[inner.rank - 1] /= factor;
    inner.count /= factor;
    s.step = step_ / factor;
    s.before = Walk<1>(before);
    s.inner = Walk<1>(inner);
    s.slice = Extent(inner.count);
    s.indices = Extent(s.index.count());
    s.total = before.count * s.index.count() * inner.count;
    s.narrow = s.total < kNarrow;
  }

  FaultKind fault_;
  uint32_t named_ = 0;  // the axis in messages
  uint32_t bytes_, unit_;
  pg::Nest<1> before_, inner_;
  int64_t step_ = 0;
  Select s_;
};
PG_KERNEL("index_select", IndexSelect);
PG_KERNEL("embedding", IndexSelect);

// ---- gradients ----

// Counts are elements: dx is [before, size, inner], dy [before, index, inner].
struct SelectGrad {
  IndexOperand index;
  Walk<1> before, at, inner;  // where dy's slices lie
  Extent slice, rows;         // elements in a slice; slices in a `before` of dx
  int64_t skip = -1, total = 0;
  bool narrow = true;
};

// One owner for each element of dx, which looks through all indices.
template <class S>
__global__ void __launch_bounds__(kThreads) scan_slices(const __grid_constant__ SelectGrad s, const S* dy, S* dx) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x, count = s.index.walk.count;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < s.total; p += stride) {
    int64_t a = p, row = s.slice.split(a, s.narrow), b = s.rows.split(row, s.narrow);
    const S* from = dy + s.before.offset(b) + s.inner.offset(a);
    GradSum<S> sum = 0;
    for (int64_t i = 0; i < count; i++) {
      int64_t value = s.index[i];
      if (value == row && value != s.skip) sum += to_sum(from[s.at.offset(i)]);
    }
    dx[p] = from_sum<S>(sum);
  }
}

__global__ void __launch_bounds__(kThreads) number_slices(const __grid_constant__ SelectGrad s, uint64_t* keys,
                                                          uint32_t* entries, const __grid_constant__ FaultSite site) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x, count = s.index.walk.count;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    int64_t value = s.index[i];
    bool outside = is_outside(value, s.rows.size);
    if (outside) note_fault(site, value, i);
    keys[i] = static_cast<uint64_t>(outside || value == s.skip ? s.rows.size : value);
    entries[i] = static_cast<uint32_t>(i);
  }
}

class IndexSelectGrad final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kNumbers);
    check_index(call, 1);
    if (!pg::is_contiguous(call.out(0))) pg::fail_support("the result must be contiguous");
    if (pg::dtype_of(call.in(0)) != pg::dtype_of(call.out(0))) pg::fail_support("the result has another dtype");
    int64_t entries = pg::element_count(call.in(1));
    if (!is_scanned(entries, pg::element_count(call.out(0)))) SortedSum::check_entries(entries);
  }
  IndexSelectGrad(const pg::KernelCall& call, pg::Plan& plan)
      : fault_(index_fault(call)), dtype_(pg::dtype_of(call.out(0))) {
    const pg_tensor &dy = call.in(0), &index = call.in(1), &dx = call.out(0);
    bool embedding = call.is("embedding_grad");
    uint32_t axis = embedding ? 0 : static_cast<uint32_t>(call.axis("axis", dx.rank));
    named_ = named_axis(call, axis);
    uint32_t index_axes = embedding ? index.rank : dx.rank == 0 ? 0 : 1;  // of dy
    uint32_t rest = axis + index_axes;
    if (embedding) s_.skip = call.attr<int64_t>("padding_idx");
    s_.index = IndexOperand(index);
    s_.before = walk_of(axis, dy.shape, dy.stride);
    s_.at = walk_of(index_axes, dy.shape + axis, dy.stride + axis);
    s_.inner = walk_of(dy.rank - rest, dy.shape + rest, dy.stride + rest);
    s_.slice = Extent(s_.inner.count);
    s_.rows = Extent(dx.rank == 0 ? 1 : dx.shape[axis]);
    s_.total = pg::element_count(dx);
    s_.narrow = s_.total < kNarrow;
    scanned_ = is_scanned(s_.index.count(), s_.total);
    if (scanned_) return;
    sorted_ = SortedSum(call, dtype_, s_.rows.size, s_.before, s_.at, s_.inner);
    plan.workspace = sorted_.workspace();
  }

  void run(const Launch& launch) override {
    FaultSite site = launch.fault_site(fault_, s_.rows.size, *launch.raw.inputs[1], named_);
    SelectGrad s = s_;
    s.index.data = launch.in(1);
    if (s.total > 0 && !scanned_) return sum_sorted(launch, s, site);
    check_indices(launch, s.index, site);
    with_sum(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      launch(grid_for(s.total), scan_slices<S>, s, launch.in<S>(0), launch.out<S>(0));
    });
  }

 private:
  void sum_sorted(const Launch& launch, const SelectGrad& s, const FaultSite& site) const {
    SortPairs rooms = sorted_.rooms(launch.workspace());
    launch(grid_for(s.index.count()), number_slices, s, rooms.keys[0], rooms.values[0], site);
    auto bytes = static_cast<size_t>(s.total * pg::dtype_bytes(dtype_));
    PG_CUDA(cudaMemsetAsync(launch.out(0), 0, bytes, launch.native()));
    sorted_.run(launch, launch.in(0), launch.out(0));
  }

  FaultKind fault_;
  uint32_t named_ = 0;  // the axis in messages
  uint32_t dtype_;
  SelectGrad s_;
  bool scanned_ = true;
  SortedSum sorted_;
};
PG_KERNEL("index_select_grad", IndexSelectGrad);
PG_KERNEL("embedding_grad", IndexSelectGrad);

}  // namespace

void check_indices(const Launch& launch, const IndexOperand& index, const FaultSite& site) {
  launch(grid_for(index.count()), check, index, site);
}

}  // namespace cuda
