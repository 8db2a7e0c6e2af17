// SPDX-License-Identifier: Apache-2.0
// randperm: numbers are sorted by their buckets, and a warp shuffles a bucket in shared memory;
// perigee/kernels/philox.hpp specifies how.
#include "../elementwise.cuh"
#include "../scan.hpp"
#include "../scratch.hpp"
#include "random.cuh"

namespace cuda::elementwise {
namespace {

constexpr int kWarp = 32;
constexpr int64_t kRoom = 3072;  // numbers; buckets hold 2,048 or fewer on average, more than this all but never

__global__ void __launch_bounds__(kThreads)
    draw_buckets(Draw d, int64_t count, int bits, uint64_t* keys, uint32_t* values) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (; i < count; i += static_cast<int64_t>(gridDim.x) * kThreads) {
    auto number = static_cast<uint64_t>(i);
    if (bits > 0) keys[i] = pg::philox::bucket_of(pg::philox::word(d.seed, d.offset, number), bits);
    values[i] = static_cast<uint32_t>(i);
  }
}

// starts[b] of sorted keys: where bucket b begins, whether it holds anything or not; starts[2^bits] is their number.
__global__ void __launch_bounds__(kThreads)
    find_starts(const uint64_t* keys, int64_t count, int bits, uint32_t* starts) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (; i <= count; i += static_cast<int64_t>(gridDim.x) * kThreads) {
    uint64_t first = i == 0 ? 0 : keys[i - 1] + 1, last = i == count ? uint64_t{1} << bits : keys[i];
    for (uint64_t b = first; b <= last; b++) starts[b] = static_cast<uint32_t>(i);
  }
}

// A block of one warp takes a bucket: all lanes draw, the first one exchanges. starts NULL: one bucket of `count`.
__global__ void __launch_bounds__(kWarp)
    shuffle_buckets(Draw d, const uint32_t* starts, int64_t count, uint32_t* values) {
  __shared__ uint32_t room[kRoom];
  __shared__ uint32_t words[4 * kWarp];
  uint64_t first = starts == nullptr ? 0 : starts[blockIdx.x];
  uint64_t end = starts == nullptr ? static_cast<uint64_t>(count) : starts[blockIdx.x + 1];
  uint64_t size = end - first;
  bool fits = size <= kRoom;
  uint32_t* bucket = fits ? room : values + first;
  for (uint64_t i = threadIdx.x; fits && i < size; i += kWarp) room[i] = values[first + i];
  for (uint64_t start = first / 4 * 4; start < end; start += 4 * kWarp) {
    pg::philox::Block b = pg::philox::second_block(d.seed, d.offset, start / 4 + threadIdx.x);
    __syncwarp();
    for (int k = 0; k < 4; k++) words[4 * threadIdx.x + k] = b.word[k];
    __syncwarp();
    if (threadIdx.x != 0) continue;
    uint64_t stop = start + 4 * kWarp < end ? start + 4 * kWarp : end;
    for (uint64_t p = start < first ? first : start; p < stop; p++) {
      uint32_t here = static_cast<uint32_t>(p - first), there = pg::philox::exchange(words[p - start], here);
      uint32_t moved = bucket[here];
      bucket[here] = bucket[there];
      bucket[there] = moved;
    }
  }
  __syncwarp();
  for (uint64_t i = threadIdx.x; fits && i < size; i += kWarp) values[first + i] = room[i];
}

struct Widen : Function<uint32_t, int64_t> {
  static constexpr bool kRenewed = false;
  static constexpr uint32_t kWidths = 2;
  static constexpr bool kAnyOutput = true;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const uint32_t (&x)[1][V], int64_t (&y)[V]) const {
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = x[0][i];
  }
};

class RandPerm final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kAny);
    if (pg::element_count(call.out(0)) > UINT32_MAX) pg::fail_support("randperm on cuda permutes below 2^32 numbers");
  }

  RandPerm(const pg::KernelCall& call, pg::Plan& plan) : seed_(call), count_(pg::element_count(call.out(0))) {
    if (count_ == 0) return;
    use_device(call.raw->device);
    const int64_t one = 1;
    pg_tensor order = call.out(0);  // as shuffled: dense, 32 bits an element
    order.dtype_code = PG_INT;
    order.dtype_bits = 32;
    order.stride = &one;
    loop_ = Loop<2>({typed(call.out(0)), raw(order)}, Widen::kWidths);
    auto count = static_cast<uint64_t>(count_);
    bits_ = pg::philox::bucket_bits(count);
    Scratch scratch;
    values_[0] = scratch.take(count * sizeof(uint32_t));
    if (bits_ > 0) {
      starts_ = scratch.take(((uint64_t{1} << bits_) + 1) * sizeof(uint32_t));
      values_[1] = scratch.take(count * sizeof(uint32_t));
      for (uint64_t& at : keys_) at = scratch.take(count * sizeof(uint64_t));
      sort_bytes_ = sort_pairs_workspace(count_);
      sort_ = scratch.take(sort_bytes_);
    }
    plan.workspace = scratch.bytes();
  }

  void run(const Launch& launch) override {
    if (count_ == 0) return;
    SortPairs rooms;
    for (int i = 0; i < 2; i++) {
      rooms.keys[i] = static_cast<uint64_t*>(piece(launch.workspace(), keys_[i]));
      rooms.values[i] = static_cast<uint32_t*>(piece(launch.workspace(), values_[i]));
    }
    Draw draw = seed_(launch);
    launch(grid_for(count_), draw_buckets, draw, count_, bits_, rooms.keys[0], rooms.values[0]);
    int room = 0;
    uint32_t* starts = nullptr;
    if (bits_ > 0) {
      room = sort_pairs(launch.native(), rooms, count_, bits_, piece(launch.workspace(), sort_), sort_bytes_);
      starts = static_cast<uint32_t*>(piece(launch.workspace(), starts_));
      launch(grid_for(count_ + 1), find_starts, rooms.keys[room], count_, bits_, starts);
    }
    launch(Grid{1u << bits_, 1, 1, kWarp}, shuffle_buckets, draw, starts, count_, rooms.values[room]);
    elementwise::run(launch.native(), loop_, {launch.out(0), rooms.values[room]}, Widen());
  }

 private:
  Seed seed_;
  int64_t count_;
  int bits_ = 0;
  uint64_t keys_[2] = {}, values_[2] = {}, starts_ = 0, sort_ = 0, sort_bytes_ = 0;
  Loop<2> loop_;
};
PG_KERNEL("randperm", RandPerm);

}  // namespace
}  // namespace cuda::elementwise
