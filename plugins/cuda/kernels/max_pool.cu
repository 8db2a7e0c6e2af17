// SPDX-License-Identifier: Apache-2.0
// max_pool2d(x) -> y, indices (h * W + w within the plane); max_pool2d_grad(dy, indices, x) -> dx, where of x only the
// shape counts; max_pool2d_gather(x, indices); the same of volumes, and adaptive pooling of sequences, images and
// volumes. Padding is minus infinity, the last NaN wins, the first of equals is taken; -1 is the index of a window that
// holds nothing but padding. cuDNN serves max_pool2d where nobody asks for indices: its engine for dense tensors gives
// none, and its gradient wants x and y instead.
#include <cmath>
#include <cstring>
#include <optional>

#include "group.cuh"
#include "kernels/pool_cudnn.hpp"
#include "kernels/sums.hpp"
#include "units.hpp"

namespace cuda {
namespace {

// W: Window<I> or Shares<I>.
template <class S, bool kDeep, class W>
__global__ void __launch_bounds__(kThreads)
    find_largest(const __grid_constant__ W w, const __grid_constant__ PlaneSplit split, int64_t total,
                 const __grid_constant__ PlaneOperand operand, const S* x, S* y, int64_t* indices) {
  using I = typename W::Index;
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < total; p += step) {
    int64_t out[3], plane = split.split<kDeep>(p, out);
    Places<I> depths{0, 1, 1};
    if constexpr (kDeep) depths = w.places(0, static_cast<I>(out[0]));
    Places<I> rows = w.places(1, static_cast<I>(out[1])), columns = w.places(2, static_cast<I>(out[2]));
    I index = -1;
    const S* from = x + operand.planes.offset(plane);
    Compute<S> best = -INFINITY;
    for (I k = 0; k < depths.count; k++) {
      I d = kDeep ? depths.first + k * depths.step : 0;
      for (I i = 0; i < rows.count; i++) {
        I h = rows.first + i * rows.step, line = ((kDeep ? d * w.size[1] : 0) + h) * w.size[2];
        for (I j = 0; j < columns.count; j++) {
          I at = columns.first + j * columns.step;
          Compute<S> value = unpack(from[operand.offset(d, h, at)]);
          bool better = index < 0 || value > best || value != value;
          best = better ? value : best;
          index = better ? line + at : index;
        }
      }
    }
    y[p] = pack<S>(best);
    if (indices != nullptr) indices[p] = index;
  }
}

// Both of windows that slide and of an axis' shares.
class MaxPool final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    with_float(pg::dtype_of(call.in(0)), [](auto) {});
    if (pg::dtype_of(call.in(0)) != pg::dtype_of(call.out(0))) pg::fail_support("the result has another dtype");
    for (uint32_t i = 0; i < call.output_count(); i++) {
      if (call.has_output(i) && !pg::is_contiguous(call.out(i))) pg::fail_support("the results must be contiguous");
    }
    shape_of(call);
  }
  MaxPool(const pg::KernelCall& call, pg::Plan& plan)
      : dtype_(pg::dtype_of(call.in(0))),
        adaptive_(is_adaptive(call)),
        shape_(shape_of(call)),
        operand_(call.in(0)),
        split_(shape_.planes, shape_.out) {
    indices_ = call.has_output(1);
    if (indices_ || adaptive_) return;
    by_cudnn_.emplace(call, dnn::PoolKind::kMax, shape_), plan.workspace = by_cudnn_->workspace();
  }
  void run(const Launch& launch) override {
    if (by_cudnn_ && by_cudnn_->run(launch)) return;
    if (shape_.narrow())
      run_in<int32_t>(launch);
    else
      run_in<int64_t>(launch);
  }

 private:
  static bool is_adaptive(const pg::KernelCall& call) { return std::strncmp(call.op(), "adaptive", 8) == 0; }
  static PoolShape shape_of(const pg::KernelCall& call) {
    PoolShape shape;
    if (is_adaptive(call)) {
      static_cast<PlaneSizes&>(shape) = PlaneSizes(call.in(0), call.out(0));
    } else {
      shape = PoolShape(call, call.in(0), call.out(0));
      shape.read_list(call, "dilation", shape.dilation);
    }
    return shape;
  }
  template <class I>
  void run_in(const Launch& launch) const {
    if (adaptive_) {
      Shares<I> shares;
      for (int d = 0; d < 3; d++) shares.size[d] = static_cast<I>(shape_.in[d]);
      for (int d = 0; d < 3; d++) shares.out[d] = static_cast<I>(shape_.out[d]);
      run_as<true>(launch, shares);
    } else if (shape_.deep()) {
      run_as<true>(launch, shape_.window<I>());
    } else {
      run_as<false>(launch, shape_.window<I>());
    }
  }
  template <bool kDeep, class W>
  void run_as(const Launch& launch, const W& windows) const {
    int64_t total = shape_.planes * shape_.pooled();
    with_float(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      launch(grid_for(total), find_largest<S, kDeep, W>, windows, split_, total, operand_, launch.in<S>(0),
             launch.out<S>(0), indices_ ? launch.out<int64_t>(1) : nullptr);
    });
  }

  uint32_t dtype_;
  bool adaptive_;
  PoolShape shape_;
  PlaneOperand operand_;
  PlaneSplit split_;
  bool indices_;
  std::optional<PoolByCudnn> by_cudnn_;
};
constexpr uint64_t kIndices = 1u << 1;
PG_KERNEL("max_pool2d", MaxPool, 0, 0, kIndices);
PG_KERNEL("max_pool3d", MaxPool, 0, 0, kIndices);
PG_KERNEL("adaptive_max_pool1d", MaxPool, 0, 0, kIndices);
PG_KERNEL("adaptive_max_pool2d", MaxPool, 0, 0, kIndices);
PG_KERNEL("adaptive_max_pool3d", MaxPool, 0, 0, kIndices);

// ---- by saved indices ----

void check_saved(const pg::KernelCall& call) {
  if (pg::dtype_of(call.in(1)) != PG_I64) pg::fail_support("indices must be int64");
  if (pg::dtype_of(call.in(0)) != pg::dtype_of(call.out(0))) pg::fail_support("the result has another dtype");
  if (!pg::is_contiguous(call.out(0))) pg::fail_support("the result must be contiguous");
}

// A block sums a plane, or a band of its rows. It first finds out which depths, rows and columns of dy can have an
// index in a depth, row or column of dx: with the windows of a max_pool these are few neighbours, though any indices
// will do. Each element of dx then has one owner, who looks through those, in order.
struct Planes {
  PlaneSizes sizes;
  PlaneOperand dy, indices;
  // Places on an axis of dx are told apart in groups of 1 << shift, so that all have room in shared memory.
  int32_t shift[3] = {}, groups[3] = {};
  int32_t lanes = 32;  // side by side on a row of dy
  int64_t band = 0;    // rows of dx, of all depths, in one
};

struct Reach {
  int32_t first, last;
};

constexpr int32_t kMaxGroups = 1024;
constexpr uint32_t kMaxPlaneThreads = 512;

__device__ __forceinline__ void extend(Reach& reach, int32_t place) {
  atomicMin(&reach.first, place);
  atomicMax(&reach.last, place);
}

struct Span {
  int32_t first = INT32_MAX, last = -1;
  __device__ __forceinline__ void cover(int32_t place) { first = min(first, place), last = max(last, place); }
  // Of the lanes that differ in these bits.
  __device__ __forceinline__ void join(uint32_t bits) {
    first = min(first, __shfl_xor_sync(kFullWarp, first, bits));
    last = max(last, __shfl_xor_sync(kFullWarp, last, bits));
  }
};

// Fills in the reaches of a plane. Returns the first position that this thread sees an index out of range at, or -1.
template <bool kDeep, class I>
__device__ int64_t find_reaches(const Planes& s, const int64_t* indices, Reach* depths, Reach* rows, Reach* columns) {
  for (int32_t i = static_cast<int32_t>(threadIdx.x); i < s.groups[0] + s.groups[1] + s.groups[2]; i += blockDim.x) {
    depths[i] = Reach{INT32_MAX, -1};  // rows and columns lie behind the depths
  }
  __syncthreads();
  int64_t bad = -1;
  auto lanes = static_cast<uint32_t>(s.lanes);
  auto lane = static_cast<int32_t>(threadIdx.x % lanes), row = static_cast<int32_t>(threadIdx.x / lanes);
  auto step = static_cast<int32_t>(blockDim.x / lanes), oh = static_cast<int32_t>(s.sizes.out[1]),
       ow = static_cast<int32_t>(s.sizes.out[2]), lines = kDeep ? static_cast<int32_t>(s.sizes.out[0]) * oh : oh;
  for (int32_t left = 0; left < ow; left += s.lanes) {
    int32_t ox = left + lane;
    Span across;
    for (int32_t top = 0; top < lines; top += step) {
      int32_t line = top + row, oz = kDeep ? line / oh : 0, oy = line - oz * oh;
      Span deep, down;
      if (line < lines && ox < ow) {
        int64_t index = indices[s.indices.offset(oz, oy, ox)];
        if (index >= 0 && index < s.sizes.size()) {
          I at = static_cast<I>(index), width = static_cast<I>(s.sizes.in[2]);
          I h = at / width, w = at - h * width;
          if constexpr (kDeep) {
            I d = h / static_cast<I>(s.sizes.in[1]);
            h -= d * static_cast<I>(s.sizes.in[1]);
            deep.cover(static_cast<int32_t>(d >> s.shift[0]));
          }
          down.cover(static_cast<int32_t>(h >> s.shift[1]));
          across.cover(static_cast<int32_t>(w >> s.shift[2]));
        } else if (int64_t position = int64_t{line} * ow + ox; index != -1 && (bad < 0 || position < bad)) {
          bad = position;  // a thread goes down its columns one after the other
        }
      }
      for (uint32_t other = lanes / 2; other > 0; other /= 2) {
        if constexpr (kDeep) deep.join(other);
        down.join(other);
      }
      for (int64_t i = int64_t{down.first} + lane; i <= down.last; i += s.lanes) extend(rows[i], oy);
      if constexpr (kDeep)
        for (int64_t i = int64_t{deep.first} + lane; i <= deep.last; i += s.lanes) extend(depths[i], oz);
    }
    for (int64_t i = across.first; i <= across.last; i++) extend(columns[i], ox);
  }
  __syncthreads();
  return bad;
}

template <class S, bool kDeep, class I>
__global__ void __launch_bounds__(kMaxPlaneThreads, 2)
    sum_planes(const __grid_constant__ Planes s, const S* dy, const int64_t* indices, S* dx,
               const __grid_constant__ FaultSite site) {
  Reach* depths = dynamic_shared<Reach>();
  Reach *rows = depths + s.groups[0], *columns = rows + s.groups[1];
  int64_t bad = -1, bad_index = 0;
  for (int64_t plane = blockIdx.x; plane < s.sizes.planes; plane += gridDim.x) {
    const int64_t* index = indices + s.indices.planes.offset(plane);
    const S* flow = dy + s.dy.planes.offset(plane);
    int64_t wrong = find_reaches<kDeep, I>(s, index, depths, rows, columns);
    if (wrong >= 0 && bad < 0) {
      bad = plane * s.sizes.pooled() + wrong;
      int64_t line = wrong / s.sizes.out[2], z = kDeep ? line / s.sizes.out[1] : 0;
      bad_index = index[s.indices.offset(z, line - z * s.sizes.out[1], wrong % s.sizes.out[2])];
    }
    auto width = static_cast<I>(s.sizes.in[2]), height = static_cast<I>(s.sizes.in[1]);
    I begin = static_cast<I>(int64_t{blockIdx.y} * s.band * s.sizes.in[2]);
    I end = static_cast<I>(min((int64_t{blockIdx.y} + 1) * s.band, s.sizes.in[0] * s.sizes.in[1]) * s.sizes.in[2]);
    S* to = dx + plane * s.sizes.size();
    for (I p = begin + static_cast<I>(threadIdx.x); p < end; p += static_cast<I>(blockDim.x)) {
      I h = p / width, w = p - h * width, d = kDeep ? h / height : 0;
      h -= d * height;
      Reach depth{0, 0}, row = rows[h >> s.shift[1]], column = columns[w >> s.shift[2]];
      if constexpr (kDeep) depth = depths[d >> s.shift[0]];
      GradSum<S> sum = 0;
      for (int32_t k = depth.first; k <= depth.last; k++) {
        for (int32_t i = row.first; i <= row.last; i++) {
          for (int32_t j = column.first; j <= column.last; j++) {
            if (index[s.indices.offset(k, i, j)] == p) sum += to_sum(flow[s.dy.offset(k, i, j)]);
          }
        }
      }
      to[p] = from_sum<S>(sum);
    }
    __syncthreads();  // the reaches are written again
  }
  if (bad >= 0) note_fault(site, bad_index, bad);
}

class MaxPoolGrad final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    with_float(pg::dtype_of(call.in(0)), [](auto) {});
    check_saved(call);
    PlaneSizes sizes(call.out(0), call.in(0));
    int64_t lines = std::max(sizes.in[0] * sizes.in[1], sizes.out[0] * sizes.out[1]);
    if (std::max({lines, sizes.in[2], sizes.out[2]}) >= kNarrow / 2) pg::fail_support("an axis is too long");
  }
  MaxPoolGrad(const pg::KernelCall& call, pg::Plan&) : dtype_(pg::dtype_of(call.in(0))) {
    s_.sizes = PlaneSizes(call.out(0), call.in(0));
    s_.dy = PlaneOperand(call.in(0));
    s_.indices = PlaneOperand(call.in(1));
    for (int d = s_.sizes.deep() ? 0 : 1; d < 3; d++) {
      while ((s_.sizes.in[d] >> s_.shift[d]) >= kMaxGroups) s_.shift[d]++;
      s_.groups[d] = static_cast<int32_t>(s_.sizes.in[d] >> s_.shift[d]) + 1;
    }
    while (s_.lanes > 1 && s_.lanes / 2 >= s_.sizes.out[2]) s_.lanes /= 2;
    set_grid();
  }
  void run(const Launch& launch) override {
    FaultSite site = launch.fault_site(FaultKind::kPlane, s_.sizes.size(), *launch.raw.inputs[1]);
    if (s_.sizes.deep())
      run_in<true>(launch, site);
    else
      run_in<false>(launch, site);
  }

 private:
  void set_grid() {
    int64_t size = s_.sizes.size(), planes = s_.sizes.planes, lines = s_.sizes.in[0] * s_.sizes.in[1];
    grid_.threads = size <= 1024 ? 128 : size <= 8192 ? 256 : kMaxPlaneThreads;
    grid_.shared = static_cast<uint32_t>(s_.groups[0] + s_.groups[1] + s_.groups[2]) * sizeof(Reach);
    grid_.x = static_cast<uint32_t>(std::min(planes, kMaxBlocks));
    grid_.y = 1;
    // Few large planes are cut into bands, each of which looks at all indices of its plane.
    if (planes > 0 && planes < 256 && size >= 16384) {
      grid_.y = static_cast<uint32_t>(std::min<int64_t>({divide_up(256, planes), 16, lines}));
    }
    s_.band = divide_up(lines, grid_.y);
  }
  template <bool kDeep>
  void run_in(const Launch& launch, const FaultSite& site) const {
    if (s_.sizes.size() < kNarrow / 2)
      run_as<kDeep, int32_t>(launch, site);
    else
      run_as<kDeep, int64_t>(launch, site);
  }
  template <bool kDeep, class I>
  void run_as(const Launch& launch, const FaultSite& site) const {
    with_float(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      launch(grid_, sum_planes<S, kDeep, I>, s_, launch.in<S>(0), launch.in<int64_t>(1), launch.out<S>(0), site);
    });
  }

  uint32_t dtype_;
  Planes s_;
  Grid grid_;
};
PG_KERNEL("max_pool2d_grad", MaxPoolGrad);
PG_KERNEL("max_pool3d_grad", MaxPoolGrad);

template <class E, bool kDeep>
__global__ void __launch_bounds__(kThreads, 4)
    take_elements(const __grid_constant__ PlaneSizes sizes, const __grid_constant__ PlaneSplit split, int64_t total,
                  const __grid_constant__ PlaneOperand x, const __grid_constant__ PlaneOperand saved, const E* from,
                  const int64_t* indices, E* y, const __grid_constant__ FaultSite site) {
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < total; p += step) {
    int64_t at[3], plane = split.split<kDeep>(p, at);
    int64_t index = indices[saved.planes.offset(plane) + saved.offset(at[0], at[1], at[2])];
    bool inside = index >= 0 && index < sizes.size();
    int64_t h = inside ? index / sizes.in[2] : 0, w = inside ? index - h * sizes.in[2] : 0;
    int64_t d = kDeep ? h / sizes.in[1] : 0;
    h -= d * sizes.in[1];
    y[p] = inside ? from[x.planes.offset(plane) + x.offset(d, h, w)] : E(0);
    if (!inside && index != -1) note_fault(site, index, p);
  }
}

class MaxPoolGather final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kNumbers);
    check_saved(call);
    PlaneSizes(call.in(0), call.out(0));
  }
  MaxPoolGather(const pg::KernelCall& call, pg::Plan&)
      : bytes_(element_bytes(call.in(0))), sizes_(call.in(0), call.out(0)), x_(call.in(0)), indices_(call.in(1)) {
    split_ = PlaneSplit(sizes_.planes, sizes_.out);
  }
  void run(const Launch& launch) override {
    FaultSite site = launch.fault_site(FaultKind::kPlane, sizes_.size(), *launch.raw.inputs[1]);
    int64_t total = sizes_.planes * sizes_.pooled();
    with_element(bytes_, [&](auto tag) {
      using E = typename decltype(tag)::type;
      launch(grid_for(total), sizes_.deep() ? take_elements<E, true> : take_elements<E, false>, sizes_, split_, total,
             x_, indices_, launch.in<E>(0), launch.in<int64_t>(1), launch.out<E>(0), site);
    });
  }

 private:
  uint32_t bytes_;
  PlaneSizes sizes_;
  PlaneOperand x_, indices_;
  PlaneSplit split_;
};
PG_KERNEL("max_pool2d_gather", MaxPoolGather);
PG_KERNEL("max_pool3d_gather", MaxPoolGather);

}  // namespace
}  // namespace cuda
