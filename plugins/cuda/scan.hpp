// SPDX-License-Identifier: Apache-2.0
// What CUB does for this plugin. It stays behind this header: scan.cu is the only file that pays for compiling it, and
// tests put a processor's version in its place.
#pragma once

#include <cstdint>

#include "runtime.hpp"

namespace cuda {

// Workspace in bytes, of the device that is current.
uint64_t exclusive_sum_workspace(int64_t count);
// values[i] becomes the sum of what stood before i, for i below `count` (at most INT32_MAX).
void exclusive_sum(cudaStream_t stream, int64_t* values, int64_t count, void* workspace, uint64_t bytes);

// Two rooms for each column: the input stands in number 0, and the other is scratch.
struct SortPairs {
  uint64_t* keys[2];
  uint32_t* values[2];
};
uint64_t sort_pairs_workspace(int64_t count);
// Sorts by the keys' lower `bits`, equal keys in the order they had; `count` is at most UINT32_MAX. The answer, known
// at once, is the number of the rooms where the result will stand.
int sort_pairs(cudaStream_t stream, const SortPairs& rooms, int64_t count, int bits, void* workspace, uint64_t bytes);

}  // namespace cuda
