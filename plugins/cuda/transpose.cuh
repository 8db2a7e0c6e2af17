// SPDX-License-Identifier: Apache-2.0
// Copies in which the target is dense along one dimension and the source along another: tiles of both are read and
// written in rows, and turned in shared memory.
#pragma once

#include "launch.hpp"
#include "perigee/kernels/strided.hpp"

namespace cuda {

constexpr int kTile = 32;
constexpr int kTileRows = kThreads / kTile;  // that a block moves at a time

// target[row * target_stride + column] = source[row + column * source_stride], for each of the outer dimensions.
struct Transpose {
  int64_t rows, columns, target_stride, source_stride;
  int64_t down, across, tiles;  // tiles of one matrix, and of all
  int32_t outer_rank;
  int64_t outer_shape[PG_MAX_RANK], outer_target[PG_MAX_RANK], outer_source[PG_MAX_RANK];
};

// False: this is no transpose, or one too narrow for tiles.
inline bool plan_transpose(const pg::Nest<2>& nest, Transpose& plan) {
  constexpr int64_t kNarrowest = 8;
  int last = nest.rank - 1, dense = -1;
  if (nest.rank < 2 || nest.stride[0][last] != 1 || nest.stride[1][last] == 1 || nest.shape[last] < kNarrowest) {
    return false;
  }
  for (int i = 0; i < last; i++) {
    if (nest.stride[1][i] == 1 && nest.shape[i] >= kNarrowest) dense = i;
  }
  if (dense < 0) return false;
  plan.rows = nest.shape[dense];
  plan.columns = nest.shape[last];
  plan.target_stride = nest.stride[0][dense];
  plan.source_stride = nest.stride[1][last];
  plan.down = divide_up(plan.rows, kTile);
  plan.across = divide_up(plan.columns, kTile);
  plan.tiles = plan.down * plan.across;
  plan.outer_rank = 0;
  for (int i = 0; i < last; i++) {
    if (i == dense) continue;
    int at = plan.outer_rank++;
    plan.outer_shape[at] = nest.shape[i];
    plan.outer_target[at] = nest.stride[0][i];
    plan.outer_source[at] = nest.stride[1][i];
    plan.tiles *= nest.shape[i];
  }
  return true;
}

template <class T>
__global__ void __launch_bounds__(kThreads) transpose_kernel(Transpose plan, T* target, const T* source) {
  __shared__ T tile[kTile][kTile + 1];  // one more: a column's elements lie in different banks
  int lane = static_cast<int>(threadIdx.x) % kTile, line = static_cast<int>(threadIdx.x) / kTile;
  for (int64_t index = blockIdx.x; index < plan.tiles; index += gridDim.x) {
    int64_t rest = index / plan.across, column = (index - rest * plan.across) * kTile;
    int64_t matrix = rest / plan.down, row = (rest - matrix * plan.down) * kTile;
    T* to = target;
    const T* from = source;
    for (int i = plan.outer_rank - 1; i >= 0; i--) {
      int64_t next = matrix / plan.outer_shape[i], at = matrix - next * plan.outer_shape[i];
      to += at * plan.outer_target[i];
      from += at * plan.outer_source[i];
      matrix = next;
    }
#pragma unroll
    for (int i = 0; i < kTile; i += kTileRows) {
      int64_t c = column + line + i, r = row + lane;
      if (c < plan.columns && r < plan.rows) tile[line + i][lane] = from[r + c * plan.source_stride];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; i += kTileRows) {
      int64_t c = column + lane, r = row + line + i;
      if (c < plan.columns && r < plan.rows) to[r * plan.target_stride + c] = tile[lane][line + i];
    }
    __syncthreads();
  }
}

inline void copy_transposed(cudaStream_t stream, const Transpose& plan, void* target, const void* source,
                            int64_t bytes) {
  auto run = [&](auto zero) {
    using T = decltype(zero);
    Grid grid;
    grid.x = static_cast<uint32_t>(plan.tiles < kMaxBlocks ? plan.tiles : kMaxBlocks);
    launch(stream, grid, transpose_kernel<T>, plan, static_cast<T*>(target), static_cast<const T*>(source));
  };
  switch (bytes) {
    case 1: return run(uint8_t());
    case 2: return run(uint16_t());
    case 4: return run(uint32_t());
    default: return run(uint64_t());
  }
}

}  // namespace cuda
