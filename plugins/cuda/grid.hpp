// SPDX-License-Identifier: Apache-2.0
// The arithmetic of launches, on the host and without CUDA, so that it is tested where there is no GPU.
#pragma once

#include <cstdint>

namespace cuda {

struct Grid {
  uint32_t x = 1, y = 1, z = 1;  // blocks; nothing is launched where one is 0
  uint32_t threads = 256;        // of a block, in one dimension
  uint32_t shared = 0;           // bytes of dynamic shared memory
};

constexpr uint32_t kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 20;  // kernels walk on in strides of the grid
constexpr int64_t kMaxBlocksY = 65535;   // the hardware's limit in y and z

constexpr int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

// One-dimensional: `per_thread` items a thread. The kernel walks in strides of the grid where there are more.
constexpr Grid grid_for(int64_t count, int64_t per_thread = 1, uint32_t threads = kThreads) {
  int64_t blocks = divide_up(divide_up(count, per_thread), threads);
  Grid grid;
  grid.x = static_cast<uint32_t>(blocks < kMaxBlocks ? blocks : kMaxBlocks);
  grid.threads = threads;
  return grid;
}

}  // namespace cuda
