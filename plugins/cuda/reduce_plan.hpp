// SPDX-License-Identifier: Apache-2.0
// How a reduction is dealt out to threads: arithmetic on the host, without CUDA, from the shape alone, so that the
// order of additions is the same on every device.
#pragma once

#include <algorithm>

#include "grid.hpp"

namespace cuda {

constexpr int64_t kReduceThreads = 256;
constexpr int64_t kEnoughBlocks = 1024;   // more do not make a device faster
constexpr int64_t kPacketsPerThread = 4;  // less is not worth a part of its own
constexpr int64_t kMaxParts = kMaxBlocksY;

constexpr int64_t power_of_two_up(int64_t n, int64_t limit) {
  int64_t power = 1;
  while (power < n && power < limit) power *= 2;
  return power;
}

// A group of threads a result. Results are reduced in `parts` by blocks of their own when there are few.
struct RowsPlan {
  int32_t lanes = 1;  // threads of a group: 1 .. 32, or all of a block
  int64_t parts = 1, per_part = 0;
  Grid grid;
};

// elements: of one result, in packets of `width`.
inline RowsPlan plan_rows(int64_t results, int64_t elements, int64_t width, bool may_split = true) {
  RowsPlan plan;
  int64_t packets = divide_up(elements, width);
  bool few = results * 32 < kEnoughBlocks * 32;
  bool by_block = packets > 32 * 16 || (few && packets > 32 * 2);
  plan.lanes = static_cast<int32_t>(by_block ? kReduceThreads : power_of_two_up(packets, 32));
  if (by_block && may_split && results > 0 && results < kEnoughBlocks / 2) {
    int64_t wanted = std::min(kEnoughBlocks / results, packets / (kReduceThreads * kPacketsPerThread));
    plan.parts = std::clamp<int64_t>(wanted, 1, kMaxParts);
  }
  plan.per_part = divide_up(divide_up(elements, plan.parts), width * 32) * width * 32;
  if (plan.per_part > 0) plan.parts = std::max<int64_t>(1, divide_up(elements, plan.per_part));
  int64_t blocks = divide_up(results, kReduceThreads / plan.lanes);
  plan.grid.x = static_cast<uint32_t>(std::min(blocks, kMaxBlocks));
  plan.grid.y = static_cast<uint32_t>(plan.parts);
  plan.grid.threads = kReduceThreads;
  return plan;
}

constexpr int64_t kCacheBytes = 32 << 10;  // of shared memory that a block keeps lines in

// Lines that are read several times: a group of threads keeps its line in shared memory where that is large enough.
struct CachedRowsPlan {
  int32_t lanes = 1;
  bool cached = false;
  int32_t per_group = 0;  // elements of shared memory
  Grid grid;
};

// computed: bytes of an element in shared memory.
inline CachedRowsPlan plan_cached_rows(int64_t lines, int64_t length, int64_t width, int64_t computed) {
  CachedRowsPlan plan;
  int64_t packets = divide_up(length, width);
  bool few = lines < kEnoughBlocks && packets > 32 * 2;
  bool by_block = few || length * computed * (kReduceThreads / 32) > kCacheBytes;
  plan.lanes = static_cast<int32_t>(by_block ? kReduceThreads : power_of_two_up(packets, 32));
  int64_t groups = kReduceThreads / plan.lanes, own = divide_up(packets, plan.lanes) * width * plan.lanes;
  plan.cached = groups * own * computed <= kCacheBytes;
  plan.per_group = static_cast<int32_t>(plan.cached ? own : 0);
  plan.grid.x = static_cast<uint32_t>(std::min(divide_up(lines, groups), kMaxBlocks));
  plan.grid.threads = kReduceThreads;
  plan.grid.shared = static_cast<uint32_t>(groups * plan.per_group * computed);
  return plan;
}

// Neighbouring results (columns) side by side: a thread reduces one of them, and the threads of a block that have the
// same one share its elements.
struct ColumnsPlan {
  int32_t lanes = 1;  // threads side by side; 256 / lanes are behind one another
  int64_t tiles = 0;  // blocks that a row of columns takes
  int64_t parts = 1, per_part = 0;
  Grid grid;
};

// outer rows of `columns` results, of `elements` elements each.
inline ColumnsPlan plan_columns(int64_t outer, int64_t columns, int64_t elements, bool may_split = true) {
  ColumnsPlan plan;
  int64_t behind = power_of_two_up(divide_up(elements, 4), 8);
  plan.lanes = static_cast<int32_t>(power_of_two_up(columns, kReduceThreads / behind));
  behind = kReduceThreads / plan.lanes;
  plan.tiles = divide_up(columns, plan.lanes);
  int64_t blocks = outer * plan.tiles;
  if (may_split && blocks > 0 && blocks < kEnoughBlocks / 2) {
    int64_t wanted = std::min(kEnoughBlocks / blocks, elements / (behind * 4 * kPacketsPerThread));
    plan.parts = std::clamp<int64_t>(wanted, 1, kMaxParts);
  }
  plan.per_part = divide_up(elements, plan.parts);
  if (plan.per_part > 0) plan.parts = std::max<int64_t>(1, divide_up(elements, plan.per_part));
  plan.grid.x = static_cast<uint32_t>(std::min(blocks, kMaxBlocks));
  plan.grid.y = static_cast<uint32_t>(plan.parts);
  plan.grid.threads = kReduceThreads;
  return plan;
}

}  // namespace cuda
