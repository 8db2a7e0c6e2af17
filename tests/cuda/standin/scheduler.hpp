// SPDX-License-Identifier: Apache-2.0
// Barriers of a block and of a warp. Which thread goes first is chosen by the environment variable
// PERIGEE_STANDIN_ORDER: "forward" (default), "backward" or "shuffle:SEED"; a kernel that forgot a barrier gives other
// results in another order.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>

namespace emulator {

using Site = std::source_location;

enum class Vote { kNone, kOr, kAnd, kCount };
// Waits for all threads of the block. The vote's result, the same for all.
int sync_block(Vote vote, int predicate, Site site);

// What lanes of a warp do together. Each gives a value and gets one.
enum class Exchange { kSync, kShuffle, kShuffleUp, kShuffleDown, kShuffleXor, kBallot, kAny, kAll };
struct LaneRequest {
  Exchange kind = Exchange::kSync;
  uint32_t mask = 0;
  uint64_t value = 0;
  int32_t operand = 0;  // source lane, distance or lane mask
  int32_t width = 32;
};
uint64_t exchange(const LaneRequest& request, Site site);
// Lanes of the calling thread's warp that have not left the kernel.
uint32_t active_lanes();

void* dynamic_shared_memory();

}  // namespace emulator

inline void __syncthreads(emulator::Site site = emulator::Site::current()) {
  emulator::sync_block(emulator::Vote::kNone, 0, site);
}
inline int __syncthreads_or(int predicate, emulator::Site site = emulator::Site::current()) {
  return emulator::sync_block(emulator::Vote::kOr, predicate, site);
}
inline int __syncthreads_and(int predicate, emulator::Site site = emulator::Site::current()) {
  return emulator::sync_block(emulator::Vote::kAnd, predicate, site);
}
inline int __syncthreads_count(int predicate, emulator::Site site = emulator::Site::current()) {
  return emulator::sync_block(emulator::Vote::kCount, predicate, site);
}
