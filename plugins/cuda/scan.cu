// SPDX-License-Identifier: Apache-2.0
#include "scan.hpp"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

namespace cuda {
namespace {

// Never none: to CUB, a workspace that is null asks how large it has to be.
uint64_t at_least_one(size_t bytes) { return bytes == 0 ? 1 : bytes; }

}  // namespace

uint64_t exclusive_sum_workspace(int64_t count) {
  size_t bytes = 0;
  int64_t* none = nullptr;
  PG_CUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes, none, none, static_cast<int>(count)));
  return at_least_one(bytes);
}

void exclusive_sum(cudaStream_t stream, int64_t* values, int64_t count, void* workspace, uint64_t bytes) {
  if (count == 0) return;
  size_t room = bytes;
  PG_CUDA(cub::DeviceScan::ExclusiveSum(workspace, room, values, values, static_cast<int>(count), stream));
}

uint64_t sort_pairs_workspace(int64_t count) {
  size_t bytes = 0;
  cub::DoubleBuffer<uint64_t> keys;
  cub::DoubleBuffer<uint32_t> values;
  PG_CUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, values, static_cast<uint32_t>(count)));
  return at_least_one(bytes);
}

int sort_pairs(cudaStream_t stream, const SortPairs& rooms, int64_t count, int bits, void* workspace, uint64_t bytes) {
  if (count == 0) return 0;
  size_t room = bytes;
  cub::DoubleBuffer<uint64_t> keys(rooms.keys[0], rooms.keys[1]);
  cub::DoubleBuffer<uint32_t> values(rooms.values[0], rooms.values[1]);
  PG_CUDA(
      cub::DeviceRadixSort::SortPairs(workspace, room, keys, values, static_cast<uint32_t>(count), 0, bits, stream));
  // Both columns move together.
  return keys.selector;
}

}  // namespace cuda
