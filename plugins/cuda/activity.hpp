// SPDX-License-Identifier: Apache-2.0
// When work ran on the device, for profiles: events of the runtime before and behind each launch and copy. Where no
// profile is under way a launch pays one load. An event's time has a resolution of about half a microsecond, and the
// two of a small kernel part it from its neighbours: CUPTI would tell more, but is no part of what every driver has.
#pragma once

#include <atomic>

#include "perigee/profiler.hpp"
#include "stream.hpp"

namespace cuda {

// Of the process, as the plugin is.
pg::ActivityLog& activity_log();
void begin_activities(uint64_t capacity);
void collect_activities();  // into the log; all work is over

// Around the submission of a piece of work: TimedWork timed(stream, PG_ACTIVITY_KERNEL, ticket); Not while a plan is
// captured, whose launches run later and as one.
class TimedWork {
 public:
  TimedWork(Stream& stream, uint32_t kind, pg::Ticket ticket, uint64_t bytes = 0) {
    if (activity_log().on()) [[unlikely]]
      begin(stream, kind, ticket, bytes);
  }
  ~TimedWork() {
    if (start_ != nullptr) [[unlikely]]
      end();
  }
  TimedWork(const TimedWork&) = delete;
  TimedWork& operator=(const TimedWork&) = delete;

 private:
  void begin(Stream& stream, uint32_t kind, pg::Ticket ticket, uint64_t bytes);
  void end() noexcept;
  cudaEvent_t start_ = nullptr;
  Stream* stream_ = nullptr;
  uint32_t kind_ = 0;
  pg::Ticket ticket_{};
  uint64_t bytes_ = 0;
};

// The plugin's kernels, each launch of which is timed.
const pg_kernels* timed_kernels(const pg_kernels& plain);

}  // namespace cuda
