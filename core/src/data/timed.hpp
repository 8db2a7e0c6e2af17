// SPDX-License-Identifier: Apache-2.0
// What stages take: time of their own, without that of those before them, and waits for other threads or the script.
#pragma once

#include <atomic>

#include "data/stage.hpp"

namespace perigee {

struct StageTimes {
  std::atomic<int64_t> elements{0}, own_ns{0}, waited_ns{0};
};

// While it lives its thread waits.
class WaitClock {
 public:
  WaitClock();
  ~WaitClock();
  WaitClock(const WaitClock&) = delete;
  WaitClock& operator=(const WaitClock&) = delete;

 private:
  const int64_t begin_;
};

int64_t now_ns();
StageRef timed_stage(StageRef stage, std::shared_ptr<StageTimes> times);
// One whose elements profiles note, under a name and a line that are kept for good.
StageRef noted_stage(StageRef stage, const char* name, const char* origin);

}  // namespace perigee
