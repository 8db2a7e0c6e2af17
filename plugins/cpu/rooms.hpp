// SPDX-License-Identifier: Apache-2.0
// A launch's workspace in equal rooms, one for each thread at work. Memory of the host's is warm; what malloc gives and
// takes at such sizes has to be filled with zeros by the system each time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "perigee/plugin.hpp"

namespace cpu {

class Rooms {
 public:
  // To be known when a kernel is prepared. Threads that are added later have rooms from the heap.
  static int64_t count() { return std::min<int64_t>(pg::thread_count(), 64); }
  static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  static uint64_t workspace(int64_t count, int64_t bytes) { return static_cast<uint64_t>(count * aligned(bytes) + 64); }

  Rooms(void* workspace, int64_t count, int64_t bytes)
      : base_(static_cast<char*>(workspace) + (64 - reinterpret_cast<uintptr_t>(workspace) % 64) % 64),
        bytes_(aligned(bytes)),
        free_(count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) {}

  class Room {
   public:
    explicit Room(Rooms& rooms) : rooms_(rooms), taken_(rooms.take()) {
      if (taken_ == 0) own_ = std::make_unique_for_overwrite<char[]>(static_cast<size_t>(rooms.bytes_) + 64);
    }
    ~Room() { rooms_.free_.fetch_or(taken_, std::memory_order_release); }
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    char* at() const {
      if (own_ != nullptr) return own_.get() + (64 - reinterpret_cast<uintptr_t>(own_.get()) % 64) % 64;
      return rooms_.base_ + __builtin_ctzll(taken_) * rooms_.bytes_;
    }

   private:
    Rooms& rooms_;
    uint64_t taken_;  // its bit; 0: all were taken
    std::unique_ptr<char[]> own_;
  };

 private:
  uint64_t take() {
    uint64_t free = free_.load(std::memory_order_acquire);
    while (free != 0 && !free_.compare_exchange_weak(free, free & (free - 1), std::memory_order_acq_rel)) {
    }
    return free & (~free + 1);
  }
  char* base_;
  int64_t bytes_;
  std::atomic<uint64_t> free_;  // a bit each
};

}  // namespace cpu
