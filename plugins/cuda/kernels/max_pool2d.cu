// SPDX-License-Identifier: Apache-2.0
// max_pool2d(x) -> y, indices (h * W + w within the plane); max_pool2d_grad(dy, indices, x) -> dx, where of x only the
// shape counts; max_pool2d_gather(x, indices). Padding is minus infinity, the last NaN wins, the first of equals is
// taken; -1 is the index of a window that holds nothing but padding. cuDNN serves max_pool2d where nobody asks for
// indices: its engine for dense tensors gives none, and its gradient wants x and y instead.
#include <cmath>
#include <optional>

#include "group.cuh"
#include "kernels/pool_cudnn.hpp"
#include "kernels/sums.hpp"
#include "units.hpp"

namespace cuda {
namespace {

template <class S, class I>
__global__ void __launch_bounds__(kThreads)
    find_largest(const __grid_constant__ Window<I> w, const __grid_constant__ PlaneSplit split, int64_t total,
                 const __grid_constant__ PlaneOperand operand, const S* x, S* y, int64_t* indices) {
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < total; p += step) {
    int64_t row, column, plane = split(p, row, column);
    I top = w.first(0, static_cast<I>(row)), left = w.first(1, static_cast<I>(column));
    I begin = w.begin(1, left), right = w.end(1, left), bottom = w.end(0, top), index = -1;
    const S* from = x + operand.planes.offset(plane);
    Compute<S> best = -INFINITY;
    for (I i = w.begin(0, top); i < bottom; i++) {
      I h = top + i * w.dilation[0];
      for (I j = begin; j < right; j++) {
        I at = left + j * w.dilation[1];
        Compute<S> value = unpack(from[h * operand.row + at * operand.column]);
        bool better = index < 0 || value > best || value != value;
        best = better ? value : best;
        index = better ? h * w.size[1] + at : index;
      }
    }
    y[p] = pack<S>(best);
    if (indices != nullptr) indices[p] = index;
  }
}

class MaxPool2d final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    with_float(pg::dtype_of(call.in(0)), [](auto) {});
    if (pg::dtype_of(call.in(0)) != pg::dtype_of(call.out(0))) pg::fail_support("the result has another dtype");
    for (uint32_t i = 0; i < call.output_count(); i++) {
      if (call.has_output(i) && !pg::is_contiguous(call.out(i))) pg::fail_support("the results must be contiguous");
    }
    PoolShape(call, call.in(0), call.out(0));
  }
  MaxPool2d(const pg::KernelCall& call, pg::Plan& plan)
      : dtype_(pg::dtype_of(call.in(0))), shape_(call, call.in(0), call.out(0)), operand_(call.in(0)) {
    PoolShape::read_pair(call, "dilation", shape_.dilation);
    indices_ = call.has_output(1);
    if (!indices_) by_cudnn_.emplace(call, dnn::PoolKind::kMax, shape_), plan.workspace = by_cudnn_->workspace();
    split_ = PlaneSplit(shape_.planes, shape_.oh, shape_.ow);
  }
  void run(const Launch& launch) override {
    if (by_cudnn_ && by_cudnn_->run(launch)) return;
    if (shape_.narrow())
      run_as<int32_t>(launch);
    else
      run_as<int64_t>(launch);
  }

 private:
  template <class I>
  void run_as(const Launch& launch) const {
    int64_t total = shape_.planes * shape_.pooled();
    with_float(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      launch(grid_for(total), find_largest<S, I>, shape_.window<I>(), split_, total, operand_, launch.in<S>(0),
             launch.out<S>(0), indices_ ? launch.out<int64_t>(1) : nullptr);
    });
  }

  uint32_t dtype_;
  PoolShape shape_;
  PlaneOperand operand_;
  PlaneSplit split_;
  bool indices_;
  std::optional<PoolByCudnn> by_cudnn_;
};
PG_KERNEL("max_pool2d", MaxPool2d, 0, 0, 1u << 1);

// ---- by saved indices ----

void check_saved(const pg::KernelCall& call) {
  if (pg::dtype_of(call.in(1)) != PG_I64) pg::fail_support("indices must be int64");
  if (pg::dtype_of(call.in(0)) != pg::dtype_of(call.out(0))) pg::fail_support("the result has another dtype");
  if (!pg::is_contiguous(call.out(0))) pg::fail_support("the result must be contiguous");
}

// A block sums a plane, or a band of its rows. It first finds out which rows and columns of dy can have an index in a
// row or column of dx: with the windows of a max_pool2d these are few neighbours, though any indices will do. Each
// element of dx then has one owner, who looks through those, in order.
struct Planes {
  PlaneSizes sizes;
  PlaneOperand dy, indices;
  // Rows and columns of dx are told apart in groups of 1 << shift, so that all have room in shared memory.
  int32_t row_shift = 0, column_shift = 0, row_groups = 0, column_groups = 0;
  int32_t lanes = 32;  // side by side on a row of dy
  int64_t band = 0;    // rows of dx in one
};

struct Reach {
  int32_t first, last;
};

constexpr int32_t kMaxGroups = 2048;
constexpr uint32_t kMaxPlaneThreads = 512;

__device__ __forceinline__ void extend(Reach& reach, int32_t place) {
  atomicMin(&reach.first, place);
  atomicMax(&reach.last, place);
}

// Fills in the reaches of a plane. Returns the first position that this thread sees an index out of range at, or -1.
template <class I>
__device__ int64_t find_reaches(const Planes& s, const int64_t* indices, Reach* rows, Reach* columns) {
  for (int32_t i = static_cast<int32_t>(threadIdx.x); i < s.row_groups + s.column_groups; i += blockDim.x) {
    rows[i] = Reach{INT32_MAX, -1};  // columns lie behind the rows
  }
  __syncthreads();
  int64_t bad = -1;
  auto lanes = static_cast<uint32_t>(s.lanes);
  auto lane = static_cast<int32_t>(threadIdx.x % lanes), row = static_cast<int32_t>(threadIdx.x / lanes);
  auto step = static_cast<int32_t>(blockDim.x / lanes), oh = static_cast<int32_t>(s.sizes.oh),
       ow = static_cast<int32_t>(s.sizes.ow);
  for (int32_t left = 0; left < ow; left += s.lanes) {
    int32_t ox = left + lane, leftmost = INT32_MAX, rightmost = -1;
    for (int32_t top = 0; top < oh; top += step) {
      int32_t oy = top + row, highest = INT32_MAX, lowest = -1;
      if (oy < oh && ox < ow) {
        int64_t index = indices[oy * s.indices.row + ox * s.indices.column];
        if (index >= 0 && index < s.sizes.size()) {
          I at = static_cast<I>(index), width = static_cast<I>(s.sizes.w);
          I h = at / width, w = at - h * width;
          highest = lowest = static_cast<int32_t>(h >> s.row_shift);
          auto group = static_cast<int32_t>(w >> s.column_shift);
          leftmost = min(leftmost, group), rightmost = max(rightmost, group);
        } else if (int64_t position = int64_t{oy} * ow + ox; index != -1 && (bad < 0 || position < bad)) {
          bad = position;  // a thread goes down its columns one after the other
        }
      }
      for (uint32_t other = lanes / 2; other > 0; other /= 2) {
        highest = min(highest, __shfl_xor_sync(kFullWarp, highest, other));
        lowest = max(lowest, __shfl_xor_sync(kFullWarp, lowest, other));
      }
      for (int64_t i = int64_t{highest} + lane; i <= lowest; i += s.lanes) extend(rows[i], oy);
    }
    for (int64_t i = leftmost; i <= rightmost; i++) extend(columns[i], ox);
  }
  __syncthreads();
  return bad;
}

template <class S, class I>
__global__ void __launch_bounds__(kMaxPlaneThreads, 2)
    sum_planes(const __grid_constant__ Planes s, const S* dy, const int64_t* indices, S* dx,
               const __grid_constant__ FaultSite site) {
  Reach* rows = dynamic_shared<Reach>();
  Reach* columns = rows + s.row_groups;
  int64_t bad = -1, bad_index = 0;
  for (int64_t plane = blockIdx.x; plane < s.sizes.planes; plane += gridDim.x) {
    const int64_t* index = indices + s.indices.planes.offset(plane);
    const S* flow = dy + s.dy.planes.offset(plane);
    int64_t wrong = find_reaches<I>(s, index, rows, columns);
    if (wrong >= 0 && bad < 0) {
      bad = plane * s.sizes.pooled() + wrong;
      bad_index = index[wrong / s.sizes.ow * s.indices.row + wrong % s.sizes.ow * s.indices.column];
    }
    auto width = static_cast<I>(s.sizes.w);
    I begin = static_cast<I>(int64_t{blockIdx.y} * s.band * s.sizes.w);
    I end = static_cast<I>(min((int64_t{blockIdx.y} + 1) * s.band, s.sizes.h) * s.sizes.w);
    S* to = dx + plane * s.sizes.size();
    for (I p = begin + static_cast<I>(threadIdx.x); p < end; p += static_cast<I>(blockDim.x)) {
      I h = p / width, w = p - h * width;
      Reach row = rows[h >> s.row_shift], column = columns[w >> s.column_shift];
      GradSum<S> sum = 0;
      for (int32_t i = row.first; i <= row.last; i++) {
        for (int32_t j = column.first; j <= column.last; j++) {
          if (index[i * s.indices.row + j * s.indices.column] == p) sum += to_sum(flow[i * s.dy.row + j * s.dy.column]);
        }
      }
      to[p] = from_sum<S>(sum);
    }
    __syncthreads();  // the reaches are written again
  }
  if (bad >= 0) note_fault(site, bad_index, bad);
}

class MaxPool2dGrad final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    with_float(pg::dtype_of(call.in(0)), [](auto) {});
    check_saved(call);
    PlaneSizes sizes(call.out(0), call.in(0));
    if (std::max({sizes.h, sizes.w, sizes.oh, sizes.ow}) >= kNarrow / 2) pg::fail_support("an axis is too long");
  }
  MaxPool2dGrad(const pg::KernelCall& call, pg::Plan&) : dtype_(pg::dtype_of(call.in(0))) {
    s_.sizes = PlaneSizes(call.out(0), call.in(0));
    s_.dy = PlaneOperand(call.in(0));
    s_.indices = PlaneOperand(call.in(1));
    while ((s_.sizes.h >> s_.row_shift) >= kMaxGroups) s_.row_shift++;
    while ((s_.sizes.w >> s_.column_shift) >= kMaxGroups) s_.column_shift++;
    s_.row_groups = static_cast<int32_t>(s_.sizes.h >> s_.row_shift) + 1;
    s_.column_groups = static_cast<int32_t>(s_.sizes.w >> s_.column_shift) + 1;
    while (s_.lanes > 1 && s_.lanes / 2 >= s_.sizes.ow) s_.lanes /= 2;
    set_grid();
  }
  void run(const Launch& launch) override {
    FaultSite site = launch.fault_site(FaultKind::kPlane, s_.sizes.size(), *launch.raw.inputs[1]);
    if (s_.sizes.size() < kNarrow / 2)
      run_as<int32_t>(launch, site);
    else
      run_as<int64_t>(launch, site);
  }

 private:
  void set_grid() {
    int64_t size = s_.sizes.size(), planes = s_.sizes.planes;
    grid_.threads = size <= 1024 ? 128 : size <= 8192 ? 256 : kMaxPlaneThreads;
    grid_.shared = static_cast<uint32_t>(s_.row_groups + s_.column_groups) * sizeof(Reach);
    grid_.x = static_cast<uint32_t>(std::min(planes, kMaxBlocks));
    grid_.y = 1;
    // Few large planes are cut into bands, each of which looks at all indices of its plane.
    if (planes > 0 && planes < 256 && size >= 16384) {
      grid_.y = static_cast<uint32_t>(std::min<int64_t>({divide_up(256, planes), 16, s_.sizes.h}));
    }
    s_.band = divide_up(s_.sizes.h, grid_.y);
  }
  template <class I>
  void run_as(const Launch& launch, const FaultSite& site) const {
    with_float(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      launch(grid_, sum_planes<S, I>, s_, launch.in<S>(0), launch.in<int64_t>(1), launch.out<S>(0), site);
    });
  }

  uint32_t dtype_;
  Planes s_;
  Grid grid_;
};
PG_KERNEL("max_pool2d_grad", MaxPool2dGrad);

template <class E>
__global__ void __launch_bounds__(kThreads, 4)
    take_elements(const __grid_constant__ PlaneSizes sizes, const __grid_constant__ PlaneSplit split, int64_t total,
                  const __grid_constant__ PlaneOperand x, const __grid_constant__ PlaneOperand saved, const E* from,
                  const int64_t* indices, E* y, const __grid_constant__ FaultSite site) {
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < total; p += step) {
    int64_t row, column, plane = split(p, row, column);
    int64_t index = indices[saved.planes.offset(plane) + row * saved.row + column * saved.column];
    bool inside = index >= 0 && index < sizes.size();
    int64_t h = inside ? index / sizes.w : 0, w = inside ? index - h * sizes.w : 0;
    y[p] = inside ? from[x.planes.offset(plane) + h * x.row + w * x.column] : E(0);
    if (!inside && index != -1) note_fault(site, index, p);
  }
}

class MaxPool2dGather final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kNumbers);
    check_saved(call);
    PlaneSizes(call.in(0), call.out(0));
  }
  MaxPool2dGather(const pg::KernelCall& call, pg::Plan&)
      : bytes_(element_bytes(call.in(0))), sizes_(call.in(0), call.out(0)), x_(call.in(0)), indices_(call.in(1)) {
    split_ = PlaneSplit(sizes_.planes, sizes_.oh, sizes_.ow);
  }
  void run(const Launch& launch) override {
    FaultSite site = launch.fault_site(FaultKind::kPlane, sizes_.size(), *launch.raw.inputs[1]);
    int64_t total = sizes_.planes * sizes_.pooled();
    with_element(bytes_, [&](auto tag) {
      using E = typename decltype(tag)::type;
      launch(grid_for(total), take_elements<E>, sizes_, split_, total, x_, indices_, launch.in<E>(0),
             launch.in<int64_t>(1), launch.out<E>(0), site);
    });
  }

 private:
  uint32_t bytes_;
  PlaneSizes sizes_;
  PlaneOperand x_, indices_;
  PlaneSplit split_;
};
PG_KERNEL("max_pool2d_gather", MaxPool2dGather);

}  // namespace
}  // namespace cuda
