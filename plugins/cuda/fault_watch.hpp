// SPDX-License-Identifier: Apache-2.0
// Whether a stream's record may hold a fault that nobody has looked for: so that only those who wait for a launch that
// can fault pay for the look.
//
// Launches of a stream come one after the other, while who waits may be on any thread: a launch that is about to happen
// is told from one that has by counting both ends of it.
#pragma once

#include <atomic>
#include <cstdint>

namespace cuda {

class FaultWatch {
 public:
  // Around the launch of a kernel that can fault, on the launching thread.
  void begin() { begun_.fetch_add(1, std::memory_order_relaxed); }
  void end() { enqueued_.store(begun_.load(std::memory_order_relaxed), std::memory_order_release); }

  // How many of them are on the stream: what is put there from now on runs behind them.
  uint64_t enqueued() const { return enqueued_.load(std::memory_order_acquire); }
  // Somebody waited for the first `count` of them and has seen what they noted.
  void saw(uint64_t count) {
    uint64_t known = seen_.load(std::memory_order_relaxed);
    while (known < count && !seen_.compare_exchange_weak(known, count, std::memory_order_release)) {
    }
  }
  // Whether there may be a fault that nobody has seen.
  bool is_pending() const { return seen_.load(std::memory_order_acquire) != begun_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> begun_{0}, enqueued_{0}, seen_{0};
};

// begin() to end(), whatever happens in between.
class FaultWatched {
 public:
  explicit FaultWatched(FaultWatch& watch) : watch_(watch) { watch_.begin(); }
  FaultWatched(const FaultWatched&) = delete;
  ~FaultWatched() { watch_.end(); }

 private:
  FaultWatch& watch_;
};

}  // namespace cuda
