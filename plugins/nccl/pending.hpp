// SPDX-License-Identifier: Apache-2.0
// Calls that are queued and may not be over: an event before and one behind them on each stream tell how far it is.
#pragma once

#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include "library.hpp"

namespace nccl {

using Clock = std::chrono::steady_clock;

// `seconds` from now; 0: never.
Clock::time_point late_after(double seconds);

// Events of one device, used again.
class EventPool {
 public:
  cudaEvent_t take();  // of the current device
  void put(cudaEvent_t event) { free_.push_back(event); }
  void destroy();

 private:
  std::vector<cudaEvent_t> free_;
};

struct Mark {  // of one stream
  size_t member;
  cudaStream_t stream;
  cudaEvent_t come, done;
};

struct Pending {
  std::string what;
  double allowed = 0;  // seconds
  Clock::time_point late = Clock::time_point::max();
  std::vector<Mark> marks;
};

// Whether the event has been passed. Throws what has happened to the device.
bool is_passed(cudaEvent_t event);

}  // namespace nccl
