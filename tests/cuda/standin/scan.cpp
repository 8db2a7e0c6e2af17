// SPDX-License-Identifier: Apache-2.0
// plugins/cuda/scan.hpp without CUB. Workspaces are filled with rubbish and results stand where CUB may put them, so
// that a caller who relies on more than the header says is found out.
#include "scan.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "emulator.hpp"

namespace cuda {
namespace {

constexpr int kBitsAtOnce = 8;  // of a pass, each of which moves from room to room

uint64_t workspace_of(int64_t count) { return 256 + static_cast<uint64_t>(count) / 16; }

void run_in_order(cudaStream_t stream, std::function<void()> body) {
  PG_CUDA(emulator::launch_kernel(stream, emulator::Geometry{}, std::move(body)));
}

void check_workspace(void* workspace, uint64_t bytes, int64_t count) {
  if (workspace == nullptr || bytes < workspace_of(count)) pg::fail(PG_E_INTERNAL, "scan: the workspace is too small");
}

}  // namespace

uint64_t exclusive_sum_workspace(int64_t count) { return workspace_of(count); }

void exclusive_sum(cudaStream_t stream, int64_t* values, int64_t count, void* workspace, uint64_t bytes) {
  if (count == 0) return;
  check_workspace(workspace, bytes, count);
  run_in_order(stream, [=] {
    std::memset(workspace, 0xa5, bytes);
    std::exclusive_scan(values, values + count, values, int64_t{0});
  });
}

uint64_t sort_pairs_workspace(int64_t count) { return workspace_of(count); }

int sort_pairs(cudaStream_t stream, const SortPairs& rooms, int64_t count, int bits, void* workspace, uint64_t bytes) {
  if (count == 0) return 0;
  check_workspace(workspace, bytes, count);
  int result = (bits + kBitsAtOnce - 1) / kBitsAtOnce % 2;
  run_in_order(stream, [=] {
    std::memset(workspace, 0xa5, bytes);
    std::vector<int64_t> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), int64_t{0});
    uint64_t mask = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    const uint64_t* from = rooms.keys[0];
    std::stable_sort(order.begin(), order.end(),
                     [=](int64_t a, int64_t b) { return (from[a] & mask) < (from[b] & mask); });
    std::vector<uint64_t> keys;
    std::vector<uint32_t> values;
    for (int64_t i : order) keys.push_back(from[i]), values.push_back(rooms.values[0][i]);
    for (int room = 0; room < 2; room++) {
      std::memset(rooms.keys[room], 0xa5, keys.size() * sizeof(uint64_t));
      std::memset(rooms.values[room], 0xa5, values.size() * sizeof(uint32_t));
    }
    std::copy(keys.begin(), keys.end(), rooms.keys[result]);
    std::copy(values.begin(), values.end(), rooms.values[result]);
  });
  return result;
}

}  // namespace cuda
