// SPDX-License-Identifier: Apache-2.0
// perigee/profiler.hpp: how a plugin tells what its device did, and when (pg.profiler/0, profiler.h).
//
//   class Plugin {                                      // that has a device, see device.hpp
//     pg::ActivityLog& activities() { return log_; }    // what is noted, from any thread
//     const void* iface(const char* id) {
//       if (std::strcmp(id, PG_IFACE_PROFILER) == 0) return &pg::profiler_table<Plugin>;
//       ...
//   // where a kernel has run:
//   if (log.on()) log.add(pg::activity(PG_ACTIVITY_KERNEL, device, ticket, begin, pg::activity_now()));
//
// A device that finds its times out later (from the vendor's events) gives the plugin a method
// `void collect_activities()`, which is called by drain before what the log holds is handed out; and, where it has to
// prepare something, `void begin_activities(uint64_t capacity)` and `void end_activities()`.
#pragma once

#include <time.h>

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "perigee/device.hpp"
#include "perigee/profiler.h"

namespace pg {

inline int64_t activity_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

inline pg_activity activity(uint32_t kind, uint32_t device, Ticket ticket, int64_t begin, int64_t end,
                            uint64_t bytes = 0, const char* name = nullptr) {
  return {PG_SIZE(pg_activity, name), kind, device, 0, ticket.stream, ticket.sequence, begin, end, bytes, name};
}

// The newest activities since start. Names must outlive the log.
class ActivityLog {
 public:
  bool on() const { return on_.load(std::memory_order_relaxed); }
  void start(uint64_t capacity) {
    std::lock_guard lock(mutex_);
    ring_.assign(capacity == 0 ? 1 : capacity, {});
    count_ = missed_ = 0;
    on_.store(true, std::memory_order_relaxed);
  }
  void stop() { on_.store(false, std::memory_order_relaxed); }
  void add(const pg_activity& activity) {
    std::lock_guard lock(mutex_);
    if (ring_.empty()) return;  // the log was drained meanwhile
    ring_[count_++ % ring_.size()] = activity;
  }
  void miss() {  // one that is not added, since there was no room for it
    std::lock_guard lock(mutex_);
    missed_++;
  }
  // Hands out what is there, the oldest first, and how many had no room.
  template <class Add>
  uint64_t drain(Add&& add) {
    std::vector<pg_activity> ring;
    uint64_t count = 0, missed = 0;
    {
      std::lock_guard lock(mutex_);
      ring = std::exchange(ring_, {});
      count = std::exchange(count_, 0);
      missed = std::exchange(missed_, 0);
    }
    const uint64_t kept = count < ring.size() ? count : ring.size();
    for (uint64_t i = count - kept; i < count; i++) add(ring[i % ring.size()]);
    return count - kept + missed;
  }

 private:
  std::atomic<bool> on_{false};
  std::mutex mutex_;
  std::vector<pg_activity> ring_;
  uint64_t count_ = 0, missed_ = 0;
};

namespace detail {

template <class Plugin>
struct ProfilerEntries {
  static Plugin& get(void* self) { return *static_cast<Plugin*>(self); }
  using Type = std::remove_reference_t<decltype(std::declval<Plugin&>().device())>;

  static int32_t start(void* self, uint64_t capacity, pg_error* error) noexcept {
    return guard(error, "start", [&] {
      if constexpr (requires { &Plugin::begin_activities; }) get(self).begin_activities(capacity);
      get(self).activities().start(capacity);
    });
  }
  static int32_t stop(void* self, pg_error* error) noexcept {
    return guard(error, "stop", [&] {
      get(self).activities().stop();
      if constexpr (requires { &Plugin::end_activities; }) get(self).end_activities();
    });
  }
  static int32_t drain(void* self, const pg_activity_sink* sink, uint64_t* lost, pg_error* error) noexcept {
    return guard(error, "drain", [&] {
      if constexpr (requires { &Plugin::collect_activities; }) get(self).collect_activities();
      *lost = get(self).activities().drain([&](const pg_activity& each) { sink->add(sink->context, &each); });
    });
  }
  static constexpr pg_profiler table() { return {PG_SIZE(pg_profiler, drain), 0, Type::type, start, stop, drain}; }
};

}  // namespace detail

template <class Plugin>
inline const pg_profiler profiler_table = detail::ProfilerEntries<Plugin>::table();

}  // namespace pg
