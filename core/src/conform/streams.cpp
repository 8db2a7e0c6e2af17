// SPDX-License-Identifier: Apache-2.0
// Streams and events as plugin.h promises them. Work is made long enough that what does not wait is found out.
#include <set>

#include "collective/devices.hpp"
#include "conform/probe.hpp"

namespace perigee::conform {
namespace {

constexpr int64_t kCount = 1 << 18;
constexpr int kRounds = 4;

// Four fills, the last of `value`: a moment's work.
void occupy(Probe& p, uint64_t buffer, uint64_t stream, double value) {
  View x(PG_F32, {kCount}, {1}, buffer);
  for (int i = 3; i >= 0; i--) p.fill(x, pg::make_number(value - i), stream);
}

float last_of(Probe& p, uint64_t buffer, uint64_t stream) {
  float last = 0;
  p.download(&last, buffer, 4, stream, (kCount - 1) * 4);
  p.sync(stream);
  return last;
}

void expect(float got, double wanted) {
  need(got == static_cast<float>(wanted), pg::format("%g is read where %g was written before", got, wanted));
}

void handles_differ(Probe& p) {
  std::set<uint64_t> streams, events;
  for (int i = 0; i < 4; i++) {
    need(streams.insert(p.stream()).second, "two streams have one handle");
    need(events.insert(p.event()).second, "two events have one handle");
  }
}

void streams_keep_order(Probe& p) {
  const uint64_t stream = p.stream(), buffer = p.alloc(8);
  int64_t got[20] = {}, values[20];
  for (int64_t i = 0; i < 20; i++) {
    values[i] = i + 1;
    p.upload(buffer, &values[i], 8, stream);
    p.download(&got[i], buffer, 8, stream);
  }
  p.sync(stream);
  for (int i = 0; i < 20; i++) need(got[i] == i + 1, pg::format("download %d reads another upload's number", i + 1));
}

void sync_waits(Probe& p) {
  const uint64_t stream = p.stream(), other = p.stream(), buffer = p.alloc(kCount * 4);
  for (int round = 1; round <= kRounds; round++) {
    occupy(p, buffer, stream, 10 * round);
    p.sync(stream);
    expect(last_of(p, buffer, other), 10 * round);
  }
}

void waits_order_streams(Probe& p) {
  const uint64_t first = p.stream(), second = p.stream(), event = p.event(), buffer = p.alloc(kCount * 4);
  for (int round = 1; round <= kRounds; round++) {
    occupy(p, buffer, first, 10 * round);
    p.record(event, first);
    p.wait(event, second);
    expect(last_of(p, buffer, second), 10 * round);
  }
}

void waits_are_for_then(Probe& p) {
  const uint64_t first = p.stream(), second = p.stream(), idle = p.stream(), event = p.event(),
                 buffer = p.alloc(kCount * 4);
  for (int round = 1; round <= kRounds; round++) {
    occupy(p, buffer, first, 10 * round);
    p.record(event, first);
    p.wait(event, second);
    p.record(event, idle);
    expect(last_of(p, buffer, second), 10 * round);
    p.sync(first);
  }
}

void records_replace(Probe& p) {
  const uint64_t idle = p.stream(), busy = p.stream(), other = p.stream(), event = p.event(),
                 buffer = p.alloc(kCount * 4);
  for (int round = 1; round <= kRounds; round++) {
    p.record(event, idle);
    p.sync(idle);
    occupy(p, buffer, busy, 10 * round);
    p.record(event, busy);
    p.ok("event_sync", p.t.event_sync, p.n, event);
    expect(last_of(p, buffer, other), 10 * round);
  }
}

void events_keep_the_host_waiting(Probe& p) {
  const uint64_t stream = p.stream(), other = p.stream(), event = p.event(), buffer = p.alloc(kCount * 4);
  for (int round = 1; round <= kRounds; round++) {
    occupy(p, buffer, stream, 10 * round);
    p.record(event, stream);
    p.ok("event_sync", p.t.event_sync, p.n, event);
    expect(last_of(p, buffer, other), 10 * round);
  }
}

void queries_tell(Probe& p) {
  const uint64_t stream = p.stream(), other = p.stream(), event = p.event(), buffer = p.alloc(kCount * 4);
  pg_error error = pg::make_error();
  for (int round = 1; round <= kRounds; round++) {
    occupy(p, buffer, stream, 10 * round);
    p.record(event, stream);
    const int32_t code = p.t.event_query(p.self, p.n, event, &error);
    need(code == PG_OK || code == PG_E_BUSY, pg::format("event_query answers %d", code));
    if (code == PG_OK) expect(last_of(p, buffer, other), 10 * round);
    p.sync(stream);
    need(p.t.event_query(p.self, p.n, event, &error) == PG_OK, "an event has not passed though its stream has");
  }
}

void new_events_have_passed(Probe& p) {
  const uint64_t stream = p.stream(), event = p.event();
  p.ok("event_query of an event that was never recorded", p.t.event_query, p.n, event);
  p.ok("event_sync of an event that was never recorded", p.t.event_sync, p.n, event);
  p.wait(event, stream);
  p.sync(stream);
}

void time_is_told(Probe& p) {
  const uint64_t stream = p.stream(), start = p.event(), stop = p.event(), buffer = p.alloc(kCount * 4);
  p.record(start, stream);
  occupy(p, buffer, stream, 1);
  p.record(stop, stream);
  p.sync(stream);
  double seconds = -1, back = 1;
  pg_error error = pg::make_error();
  const int32_t code = p.t.event_elapsed(p.self, p.n, start, stop, &seconds, &error);
  if (code == PG_E_UNIMPLEMENTED) return;
  need(code == PG_OK, "event_elapsed fails: " + pg::message_of(code, error));
  need(seconds > 0 && seconds < 60, pg::format("some work took %g seconds", seconds));
  p.ok("event_elapsed", p.t.event_elapsed, p.n, stop, start, &back);
  need(back <= 0, "time passes from the later event to the earlier one");
}

void plans_are_launched(Probe& p) {
  const uint64_t stream = p.stream(), buffer = p.alloc(64);
  View x(PG_F32, {16}, {1}, buffer);
  pg_error error = pg::make_error();
  const int32_t code = p.t.capture_begin(p.self, p.n, stream, &error);
  if (code == PG_E_UNIMPLEMENTED) return;
  need(code == PG_OK, "capture_begin fails: " + pg::message_of(code, error));
  p.fill(x, pg::make_number(7.0), stream);
  uint64_t plan = 0;
  p.ok("capture_end", p.t.capture_end, p.n, stream, &plan);
  p.fill(x, pg::make_number(1.0), stream);
  float got = 0;
  p.download(&got, buffer, 4, stream, 60);
  p.sync(stream);
  need(got == 1.0f, "what is captured runs at once");
  for (int i = 0; i < 2; i++) {
    p.ok("plan_launch", p.t.plan_launch, p.n, plan, stream, p.number());
    p.download(&got, buffer, 4, stream, 60);
    p.sync(stream);
    need(got == 7.0f, "a plan does not do what was captured");
    p.fill(x, pg::make_number(1.0), stream);
  }
  p.sync(stream);
  p.ok("plan_destroy", p.t.plan_destroy, p.n, plan);
}

}  // namespace

std::vector<Check> stream_checks() {
  return {{"streams", "streams and events have handles of their own", handles_differ, true},
          {"streams", "a stream works in order", streams_keep_order},
          {"streams", "synchronising waits for all that a stream was given", sync_waits, true},
          {"streams", "a stream that waits for an event sees what came before it", waits_order_streams, true},
          {"streams", "a wait is for the recording at the time of the call", waits_are_for_then, true},
          {"streams", "recording an event again replaces what it stood for", records_replace, true},
          {"streams", "an event keeps the host waiting", events_keep_the_host_waiting, true},
          {"streams", "a query tells whether an event has passed", queries_tell, true},
          {"streams", "an event that was never recorded has passed", new_events_have_passed, true},
          {"streams", "events tell the time between them", time_is_told, true},
          {"streams", "what is captured runs when its plan is launched", plans_are_launched, true}};
}

}  // namespace perigee::conform

namespace perigee {

std::vector<Finding> conform_device(Device& device, const std::string& group) {
  if (device.absent) fail_absent(device.name);
  std::vector<Finding> found;
  std::vector<std::vector<conform::Check>> lists{conform::memory_checks(), conform::copy_checks(),
                                                 conform::stream_checks()};
  if (device.plugin()->profiler != nullptr) lists.push_back(conform::profiler_checks());
  if (find_device_engine(device.type) != nullptr) lists.push_back(conform::collective_checks(device));
  for (const auto& list : lists)
    for (const conform::Check& check : list) {
      if ((check.asynchronous && device.synchronous) || (!group.empty() && group != check.group)) continue;
      Finding& finding = found.emplace_back(Finding{check.group, check.name, ""});
      try {
        conform::Probe probe(device);
        check.run(probe);
      } catch (const std::exception& e) {
        finding.problem = e.what()[0] != '\0' ? e.what() : "it fails";
      }
    }
  return found;
}

}  // namespace perigee
