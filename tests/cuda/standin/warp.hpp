// SPDX-License-Identifier: Apache-2.0
// Warp intrinsics, over emulator::exchange.
#pragma once

#include "scheduler.hpp"

namespace emulator {

template <class T>
T shuffle(Exchange kind, uint32_t mask, T value, int32_t operand, int32_t width, Site site) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "what the hardware shuffles");
  LaneRequest request{kind, mask, 0, operand, width};
  std::memcpy(&request.value, &value, sizeof value);
  uint64_t got = emulator::exchange(request, site);
  std::memcpy(&value, &got, sizeof value);
  return value;
}

}  // namespace emulator

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, emulator::Site site = emulator::Site::current()) {
  return emulator::shuffle(emulator::Exchange::kShuffle, mask, value, lane, width, site);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32,
                 emulator::Site site = emulator::Site::current()) {
  return emulator::shuffle(emulator::Exchange::kShuffleUp, mask, value, static_cast<int>(distance), width, site);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32,
                   emulator::Site site = emulator::Site::current()) {
  return emulator::shuffle(emulator::Exchange::kShuffleDown, mask, value, static_cast<int>(distance), width, site);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, emulator::Site site = emulator::Site::current()) {
  return emulator::shuffle(emulator::Exchange::kShuffleXor, mask, value, lanes, width, site);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, emulator::Site site = emulator::Site::current()) {
  emulator::exchange({emulator::Exchange::kSync, mask, 0, 0, 32}, site);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, emulator::Site site = emulator::Site::current()) {
  return static_cast<unsigned>(emulator::exchange({emulator::Exchange::kBallot, mask, predicate != 0, 0, 32}, site));
}
inline int __any_sync(unsigned mask, int predicate, emulator::Site site = emulator::Site::current()) {
  return static_cast<int>(emulator::exchange({emulator::Exchange::kAny, mask, predicate != 0, 0, 32}, site));
}
inline int __all_sync(unsigned mask, int predicate, emulator::Site site = emulator::Site::current()) {
  return static_cast<int>(emulator::exchange({emulator::Exchange::kAll, mask, predicate != 0, 0, 32}, site));
}
inline unsigned __activemask() { return emulator::active_lanes(); }
