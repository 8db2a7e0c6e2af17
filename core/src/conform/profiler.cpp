// SPDX-License-Identifier: Apache-2.0
// What a device tells of itself as perigee/profiler.h promises it, where its plugin has that interface.
#include <algorithm>

#include "base/profile.hpp"
#include "conform/probe.hpp"

namespace perigee::conform {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

struct Told {
  std::vector<pg_activity> activities;  // of the device that is asked
  uint64_t lost = 0;
};

// Between its making and its end the device notes.
class Noting {
 public:
  Noting(Probe& p, uint64_t capacity) : p_(p), t_(*p.device.plugin()->profiler) {
    p.ok("start of the profiler", t_.start, capacity);
    on_ = true;
  }
  Noting(const Noting&) = delete;
  ~Noting() {
    pg_error error = pg::make_error();
    if (on_) t_.stop(p_.self, &error);
  }
  Told finish() {
    on_ = false;
    p_.ok("stop of the profiler", t_.stop);
    Taken taken{&p_, {}, ""};
    const pg_activity_sink sink{PG_SIZE(pg_activity_sink, add), 0, &taken, take};
    p_.ok("drain", t_.drain, &sink, &taken.told.lost);
    need(taken.problem.empty(), taken.problem);
    return std::move(taken.told);
  }

 private:
  struct Taken {
    Probe* probe;
    Told told;
    std::string problem;
  };
  static void take(void* context, const pg_activity* activity) {
    Taken& to = *static_cast<Taken*>(context);
    if (!PG_HAS(activity, pg_activity, bytes)) {
      to.problem = "an activity says that it is too small to have all fields";
    } else if (activity->device == to.probe->n) {
      to.told.activities.push_back(*activity);
      to.told.activities.back().name = nullptr;
    }
  }
  Probe& p_;
  const pg_profiler& t_;
  bool on_ = false;
};

void work_is_told(Probe& p) {
  constexpr int64_t kCount = 1 << 16;
  const uint64_t stream = p.stream(), buffer = p.alloc(kCount * 4), other = p.alloc(kCount * 4);
  const std::vector<float> source(kCount, 1);
  std::vector<float> target(kCount);
  View x(PG_F32, {kCount}, {1}, buffer), y(PG_F32, {kCount}, {1}, other);
  const pg_number two = pg::make_number(2.0);
  const uint64_t up = p.number(), fill = p.number(), copy = p.number(), down = p.number();
  const int64_t before = monotonic_ns();
  Noting noting(p, 64);
  p.ok("upload", p.t.upload, p.n, buffer, uint64_t{0}, static_cast<const void*>(source.data()), uint64_t{kCount * 4},
       stream, up);
  p.ok("fill", p.t.fill, p.n, static_cast<const pg_tensor*>(&x.t), &two, stream, fill);
  p.ok("copy", p.t.copy, p.n, static_cast<const pg_tensor*>(&y.t), static_cast<const pg_tensor*>(&x.t), stream, copy);
  p.ok("download", p.t.download, p.n, static_cast<void*>(target.data()), other, uint64_t{0}, uint64_t{kCount * 4},
       stream, down);
  p.sync(stream);
  Told told = noting.finish();
  const int64_t after = monotonic_ns();
  need(told.lost == 0, pg::format("%llu activities are said to be lost, where there was room",
                                  static_cast<unsigned long long>(told.lost)));
  struct Asked {
    const char* what;
    uint64_t sequence;
    uint32_t kind;
    uint64_t bytes;
  };
  for (const Asked& asked :
       {Asked{"the upload", up, PG_ACTIVITY_UPLOAD, kCount * 4}, Asked{"the fill", fill, PG_ACTIVITY_KERNEL, 0},
        Asked{"the copy", copy, PG_ACTIVITY_KERNEL, 0},
        Asked{"the download", down, PG_ACTIVITY_DOWNLOAD, kCount * 4}}) {
    uint64_t bytes = 0, count = 0;
    for (const pg_activity& a : told.activities) {
      if (a.sequence != asked.sequence) continue;
      count++;
      bytes += a.bytes;
      need(a.kind == asked.kind, pg::format("%s is told as kind %u", asked.what, a.kind));
      need(a.stream == stream, std::string(asked.what) + " is told of another stream");
    }
    need(count > 0, std::string(asked.what) + " is not told by its sequence number");
    need(bytes == asked.bytes,
         pg::format("%s is told with %llu bytes; it has %llu", asked.what, static_cast<unsigned long long>(bytes),
                    static_cast<unsigned long long>(asked.bytes)));
  }
  std::sort(told.activities.begin(), told.activities.end(),
            [](const pg_activity& a, const pg_activity& b) { return a.sequence < b.sequence; });
  const pg_activity* last = nullptr;
  for (const pg_activity& a : told.activities) {
    need(a.begin <= a.end, "an activity ends before it begins");
    // Clocks that were set by each other a moment ago may still be apart by what that took.
    need(a.begin >= before - kSecond && a.end <= after + kSecond, "times are not those of the host's CLOCK_MONOTONIC");
    need(last == nullptr || last->sequence == a.sequence || last->end <= a.begin,
         "activities of one stream overlap, or are told out of order");
    last = &a;
  }
}

void told_once(Probe& p) {
  const uint64_t stream = p.stream(), buffer = p.alloc(64);
  View x(PG_F32, {16}, {1}, buffer);
  {
    Noting noting(p, 16);
    p.fill(x, pg::make_number(1.0), stream);
    p.sync(stream);
    need(!noting.finish().activities.empty(), "a fill is not told");
  }
  p.fill(x, pg::make_number(2.0), stream);
  p.sync(stream);
  Noting noting(p, 16);
  p.sync(stream);
  need(noting.finish().activities.empty(), "what was told, or done before the start, is told again");
}

void newest_are_kept(Probe& p) {
  constexpr uint64_t kRoom = 4, kFills = 40;
  const uint64_t stream = p.stream(), buffer = p.alloc(64);
  View x(PG_F32, {16}, {1}, buffer);
  const pg_number one = pg::make_number(1.0);
  Noting noting(p, kRoom);
  uint64_t newest = 0;
  for (uint64_t i = 0; i < kFills; i++) {
    newest = p.number();
    p.ok("fill", p.t.fill, p.n, static_cast<const pg_tensor*>(&x.t), &one, stream, newest);
  }
  p.sync(stream);
  const Told told = noting.finish();
  need(told.activities.size() >= kRoom, "fewer activities are kept than there was room for");
  need(told.activities.size() + told.lost >= kFills, "what had no room is not counted as lost");
  need(std::any_of(told.activities.begin(), told.activities.end(),
                   [&](const pg_activity& a) { return a.sequence == newest; }),
       "the newest activity is not kept");
}

}  // namespace

std::vector<Check> profiler_checks() {
  return {{"profiler", "work is told by its number, with its kind, bytes and times", work_is_told},
          {"profiler", "what was told is forgotten", told_once},
          {"profiler", "the newest activities are kept, and the others counted", newest_are_kept}};
}

}  // namespace perigee::conform
