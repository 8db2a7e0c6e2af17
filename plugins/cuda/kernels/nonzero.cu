// SPDX-License-Identifier: Apache-2.0
// nonzero, masked_select and its gradient. Tiles of elements are counted first; sums of the counts then say where each
// tile's results go. Results are as large as they can get; the true extents are published when the stream gets there.
#include <algorithm>

#include "group.cuh"
#include "kernel.hpp"
#include "scan.hpp"
#include "units.hpp"
#include "walk.hpp"

namespace cuda {
namespace {

constexpr int kMaskRows = 8, kWarps = kThreads / 32;  // a tile is so many rows of elements, one a thread
constexpr int64_t kMaskTile = int64_t{kThreads} * kMaskRows;
static_assert(kMaskRows * kWarps == 64, "the first warp numbers two a lane");

// Any dtype as booleans: bits other than a float's sign decide.
struct Truth {
  const void* data = nullptr;  // set at launch
  uint64_t mask = ~uint64_t{0};
  uint32_t bytes = 1;
  bool linear = true;
  Walk<1> walk;

  Truth() = default;
  Truth(const pg_tensor& t, const Walk<1>& walk) : bytes(element_bytes(t)), walk(walk) {
    linear = walk.linear(0);
    if (pg::dtype_class(pg::dtype_of(t)) == PG_M_FLOAT) mask = (uint64_t{1} << (bytes * 8 - 1)) - 1;
  }
  __device__ bool operator()(int64_t p) const {
    int64_t at = linear ? p : walk.offset(p);
    uint64_t bits;
    switch (bytes) {
      case 1: bits = static_cast<const uint8_t*>(data)[at]; break;
      case 2: bits = static_cast<const uint16_t*>(data)[at]; break;
      case 4: bits = static_cast<const uint32_t*>(data)[at]; break;
      default: bits = static_cast<const uint64_t*>(data)[at]; break;
    }
    return (bits & mask) != 0;
  }
};

// A tile's rows of kThreads elements: this thread's element of row i.
__device__ __forceinline__ int64_t element_of(int64_t tile, int i) {
  return tile * kMaskTile + int64_t{i} * kThreads + threadIdx.x;
}
// Bit i: whether this thread's element of row i is true.
__device__ __forceinline__ uint32_t true_bits(const Truth& truth, int64_t tile) {
  uint32_t bits = 0;
#pragma unroll 2
  for (int i = 0; i < kMaskRows; i++) {
    int64_t p = element_of(tile, i);
    if (p < truth.walk.count && truth(p)) bits |= 1u << i;
  }
  return bits;
}

// counts[i] for every tile, and 0 behind them, where the sum of all will stand.
__global__ void __launch_bounds__(kThreads)
    count_tiles(const __grid_constant__ Truth truth, int64_t tiles, int64_t* counts) {
  __shared__ int32_t warps[kWarps];
  for (int64_t tile = blockIdx.x; tile <= tiles; tile += gridDim.x) {
    int32_t count = __popc(true_bits(truth, tile));
    for (uint32_t step = 16; step > 0; step /= 2) count += __shfl_xor_sync(kFullWarp, count, step);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = count;
    __syncthreads();
    if (threadIdx.x == 0) {
      int32_t total = 0;
      for (int i = 0; i < kWarps; i++) total += warps[i];
      counts[tile] = total;
    }
    __syncthreads();
  }
}

// What true elements lie before each row of each warp, in the tile, and behind those their sum. Called by all threads.
__device__ __forceinline__ void number_rows(uint32_t bits, int32_t* before) {
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int i = 0; i < kMaskRows; i++) {
    int32_t count = __popc(__ballot_sync(kFullWarp, bits >> i & 1u));
    if (lane == 0) before[i * kWarps + static_cast<int>(warp)] = count;
  }
  __syncthreads();
  if (warp == 0) {  // each lane numbers two
    int32_t first = before[2 * lane], own = first + before[2 * lane + 1], sum = own;
    for (uint32_t step = 1; step < 32; step *= 2) {
      int32_t left = __shfl_up_sync(kFullWarp, sum, step);
      if (lane >= step) sum += left;
    }
    before[2 * lane] = sum - own;
    before[2 * lane + 1] = sum - own + first;
    if (lane == 31) before[kMaskRows * kWarps] = sum;
  }
  __syncthreads();
}

// put(p, place, is_true) for every element p, where `place` true ones lie before it; then, once, put.finish(how many
// are true). No places: there is one tile.
template <class Put>
__global__ void __launch_bounds__(kThreads) place_elements(const __grid_constant__ Truth truth, int64_t tiles,
                                                           const int64_t* places, const __grid_constant__ Put put) {
  __shared__ int32_t before[kMaskRows * kWarps + 1];
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    uint32_t bits = true_bits(truth, tile);
    number_rows(bits, before);
    int64_t start = places == nullptr ? 0 : places[tile];
#pragma unroll 1
    for (int i = 0; i < kMaskRows; i++) {
      bool is_true = (bits >> i & 1u) != 0;
      uint32_t left = __ballot_sync(kFullWarp, is_true) & ((1u << lane) - 1);
      int64_t p = element_of(tile, i), place = start + before[i * kWarps + static_cast<int>(warp)] + __popc(left);
      if (p < truth.walk.count) put(p, place, is_true);
    }
    __syncthreads();  // `before` is written again
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) put.finish(places == nullptr ? before[kMaskRows * kWarps] : places[tiles]);
}

// The launches that all three operators are made of.
class Placement {
 public:
  Placement() = default;
  Placement(const pg::KernelCall& call, const pg_tensor& t, const Walk<1>& walk) : truth_(t, walk) {
    tiles_ = std::max<int64_t>(1, divide_up(walk.count, kMaskTile));
    if (tiles_ == 1) return;
    counts_bytes_ = (static_cast<uint64_t>(tiles_ + 1) * sizeof(int64_t) + 255) / 256 * 256;
    use_device(call.raw->device);
    sum_bytes_ = exclusive_sum_workspace(tiles_ + 1);
  }
  uint64_t workspace() const { return counts_bytes_ + sum_bytes_; }
  int64_t count() const { return truth_.walk.count; }

  template <class Put>
  void run(const Launch& launch, const void* data, const Put& put) const {
    Truth truth = truth_;
    truth.data = data;
    Grid grid = grid_for(tiles_ * kThreads);
    int64_t* places = nullptr;
    if (tiles_ > 1) {
      places = launch.workspace<int64_t>();
      launch(grid_for((tiles_ + 1) * kThreads), count_tiles, truth, tiles_, places);
      exclusive_sum(launch.native(), places, tiles_ + 1, launch.workspace<char>() + counts_bytes_, sum_bytes_);
    }
    launch(grid, place_elements<Put>, truth, tiles_, places, put);
  }

 private:
  Truth truth_;
  int64_t tiles_ = 1;
  uint64_t counts_bytes_ = 0, sum_bytes_ = 0;
};

// ---- nonzero ----

struct PutPosition {
  int64_t *out, *extents;
  Extent extent[PG_MAX_RANK];
  int32_t rank;
  bool narrow;
  PG_HD void operator()(int64_t p, int64_t place, bool is_true) const {
    if (!is_true) return;
    for (int d = rank - 1; d >= 0; d--) {
      int64_t own = p;
      p = extent[d].split(own, narrow);
      out[place * rank + d] = own;
    }
  }
  PG_HD void finish(int64_t total) const {
    extents[0] = total;
    extents[1] = rank;
  }
};

class NonZero final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kAny);
    if (pg::dtype_of(call.out(0)) != PG_I64) pg::fail_support("positions are int64");
  }
  NonZero(const pg::KernelCall& call, pg::Plan& plan) : placement_(call, call.in(0), walk_of(call.in(0))) {
    const pg_tensor& x = call.in(0);
    put_.rank = static_cast<int32_t>(x.rank);
    put_.narrow = placement_.count() < kNarrow;
    for (uint32_t i = 0; i < x.rank; i++) put_.extent[i] = Extent(x.shape[i]);
    plan.workspace = placement_.workspace();
  }
  void run(const Launch& launch) override {
    PutPosition put = put_;
    put.out = launch.out<int64_t>(0);
    put.extents = launch.raw.extents;
    placement_.run(launch, launch.in(0), put);
  }

 private:
  Placement placement_;
  PutPosition put_{};
};
PG_KERNEL("nonzero", NonZero);

// ---- masked_select ----

// A tensor under the common shape of two that broadcast.
Walk<1> walk_broadcast(const pg_tensor& t, const pg_tensor& other) {
  uint32_t rank = std::max(t.rank, other.rank);
  int64_t shape[PG_MAX_RANK], stride[PG_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) {
    int64_t a = i < rank - t.rank ? 1 : t.shape[i - (rank - t.rank)];
    int64_t b = i < rank - other.rank ? 1 : other.shape[i - (rank - other.rank)];
    shape[i] = a == 1 ? b : a;
  }
  pg::broadcast_strides(t, rank, stride);
  return walk_of(rank, shape, stride);
}

template <class E>
struct PutSelected {
  const E* x;
  E* y;
  int64_t* extents;
  bool linear;
  Walk<1> walk;
  PG_HD void operator()(int64_t p, int64_t place, bool is_true) const {
    if (is_true) y[place] = x[linear ? p : walk.offset(p)];
  }
  PG_HD void finish(int64_t total) const { extents[0] = total; }
};

class MaskedSelect final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kAny);
    if (pg::dtype_of(call.in(1)) != PG_B8) pg::fail_support("the mask must be bool");
    if (pg::dtype_of(call.in(0)) != pg::dtype_of(call.out(0))) pg::fail_support("the result has another dtype");
  }
  MaskedSelect(const pg::KernelCall& call, pg::Plan& plan)
      : bytes_(element_bytes(call.in(0))),
        placement_(call, call.in(1), walk_broadcast(call.in(1), call.in(0))),
        x_(walk_broadcast(call.in(0), call.in(1))) {
    plan.workspace = placement_.workspace();
  }
  void run(const Launch& launch) override {
    with_element(bytes_, [&](auto tag) {
      using E = typename decltype(tag)::type;
      PutSelected<E> put{launch.in<E>(0), launch.out<E>(0), launch.raw.extents, x_.linear(0), x_};
      placement_.run(launch, launch.in(1), put);
    });
  }

 private:
  uint32_t bytes_;
  Placement placement_;
  Walk<1> x_;
};
PG_KERNEL("masked_select", MaskedSelect);

// dx gets dy's elements one after the other where the mask is true, else 0.
template <class E>
struct PutFlow {
  const E* dy;
  E* dx;
  int64_t step, count;
  FaultSite site;
  __device__ void operator()(int64_t p, int64_t place, bool is_true) const {
    dx[p] = is_true && place < count ? dy[place * step] : E(0);
  }
  __device__ void finish(int64_t total) const {
    if (total > count) note_fault(site, total, 0);
  }
};

class MaskedSelectGrad final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kAny);
    const pg_tensor &dy = call.in(0), &mask = call.in(1), &dx = call.out(0);
    if (pg::dtype_of(mask) != PG_B8) pg::fail_support("the mask must be bool");
    if (pg::dtype_of(dy) != pg::dtype_of(dx)) pg::fail_support("the result has another dtype");
    if (!pg::is_contiguous(dx)) pg::fail_support("the result must be contiguous");
    bool fits = mask.rank <= dx.rank && dy.rank <= 1;
    for (uint32_t i = 0; fits && i < mask.rank; i++) {
      fits = mask.shape[i] == 1 || mask.shape[i] == dx.shape[dx.rank - mask.rank + i];
    }
    if (!fits) pg::fail_support("the mask does not broadcast to the result");
  }
  MaskedSelectGrad(const pg::KernelCall& call, pg::Plan& plan)
      : bytes_(element_bytes(call.out(0))), placement_(call, call.in(1), walk_broadcast(call.in(1), call.out(0))) {
    const pg_tensor& dy = call.in(0);
    step_ = dy.rank == 0 ? 0 : dy.stride[0];
    count_ = pg::element_count(dy);
    plan.workspace = placement_.workspace();
  }
  void run(const Launch& launch) override {
    if (placement_.count() == 0) return;
    FaultSite site = launch.fault_site(FaultKind::kTooMany, count_, *launch.raw.outputs[0]);
    with_element(bytes_, [&](auto tag) {
      using E = typename decltype(tag)::type;
      PutFlow<E> put{launch.in<E>(0), launch.out<E>(0), step_, count_, site};
      placement_.run(launch, launch.in(1), put);
    });
  }

 private:
  uint32_t bytes_;
  Placement placement_;
  int64_t step_ = 0, count_ = 0;
};
PG_KERNEL("masked_select_grad", MaskedSelectGrad);

}  // namespace
}  // namespace cuda
