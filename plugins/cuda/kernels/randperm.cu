// SPDX-License-Identifier: Apache-2.0
// randperm: the numbers below n, sorted by the pair of random words of each; a stable sort keeps equal ones in order.
#include "../elementwise.cuh"
#include "../scan.hpp"
#include "../scratch.hpp"
#include "random.cuh"

namespace cuda::elementwise {
namespace {

__global__ void __launch_bounds__(kThreads) draw_keys(Draw d, int64_t count, uint64_t* keys, uint32_t* values) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (; i < count; i += static_cast<int64_t>(gridDim.x) * kThreads) {
    pg::philox::Block b = pg::philox::block(d.seed, d.offset, static_cast<uint64_t>(i) >> 1);
    keys[i] = (i & 1) != 0 ? pg::philox::join(b.word[2], b.word[3]) : pg::philox::join(b.word[0], b.word[1]);
    values[i] = static_cast<uint32_t>(i);
  }
}

struct Widen : Function<uint32_t, int64_t> {
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
    pg_tensor order = call.out(0);  // as sorted: dense, 32 bits an element
    order.dtype_code = PG_INT;
    order.dtype_bits = 32;
    order.stride = &one;
    loop_ = Loop<2>({typed(call.out(0)), raw(order)}, Widen::kWidths);
    auto count = static_cast<uint64_t>(count_);
    Scratch scratch;
    for (uint64_t& at : keys_) at = scratch.take(count * sizeof(uint64_t));
    for (uint64_t& at : values_) at = scratch.take(count * sizeof(uint32_t));
    sort_bytes_ = sort_pairs_workspace(count_);
    sort_ = scratch.take(sort_bytes_);
    plan.workspace = scratch.bytes();
  }

  void run(const Launch& launch) override {
    if (count_ == 0) return;
    SortPairs rooms;
    for (int i = 0; i < 2; i++) {
      rooms.keys[i] = static_cast<uint64_t*>(piece(launch.workspace(), keys_[i]));
      rooms.values[i] = static_cast<uint32_t*>(piece(launch.workspace(), values_[i]));
    }
    launch(grid_for(count_), draw_keys, seed_(launch), count_, rooms.keys[0], rooms.values[0]);
    int room = sort_pairs(launch.native(), rooms, count_, 64, piece(launch.workspace(), sort_), sort_bytes_);
    elementwise::run(launch.native(), loop_, {launch.out(0), rooms.values[room]}, Widen());
  }

 private:
  Seed seed_;
  int64_t count_;
  uint64_t keys_[2] = {}, values_[2] = {}, sort_ = 0, sort_bytes_ = 0;
  Loop<2> loop_;
};
PG_KERNEL("randperm", RandPerm);

}  // namespace
}  // namespace cuda::elementwise
