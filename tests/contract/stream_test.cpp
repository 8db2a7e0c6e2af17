// SPDX-License-Identifier: Apache-2.0
// Streams keep their order, events carry it from one to another, and failures are reported where plugin.h says.
#include "subject.hpp"

using namespace contract;

namespace {

// The number of fills that keep a device busy for a moment.
void occupy(Plugin& plugin, uint64_t s, uint64_t buffer, int64_t count) {
  Tensor large(PG_F32, {count});
  pg_tensor t = describe(large, buffer);
  for (int i = 0; i < 4; i++) {
    const pg_number value = pg::make_number(1.0 + i);
    plugin.ok(plugin.device->fill, 0u, static_cast<const pg_tensor*>(&t), &value, s, ++plugin.sequence);
  }
}

Call lookup(double index) {
  Call call("embedding");
  call.in(Tensor(PG_F32, {3, 2}, {1, 2, 3, 4, 5, 6})).in(Tensor(PG_I64, {2}, {0, index}));
  return call;
}

}  // namespace

TEST_CASE("A stream works in order") {
  SUBJECT(plugin);
  uint64_t s = plugin.stream(), buffer = plugin.alloc(8);
  int64_t got[20], values[20];
  for (int64_t i = 0; i < 20; i++) {
    values[i] = i;
    plugin.upload(buffer, &values[i], 8, s);
    plugin.download(&got[i], buffer, 8, s);
  }
  plugin.sync(s);
  CHECK(std::equal(got, got + 20, values));
}

TEST_CASE("A stream that waits for an event sees what came before it") {
  SUBJECT(plugin);
  constexpr int64_t kCount = 1 << 18;
  uint64_t first = plugin.stream(), second = plugin.stream(), event = plugin.event();
  uint64_t buffer = plugin.alloc(kCount * 4);
  for (int round = 0; round < 10; round++) {
    occupy(plugin, first, buffer, kCount);
    plugin.ok(plugin.device->event_record, 0u, event, first);
    plugin.ok(plugin.device->event_wait, 0u, event, second);
    float last = 0;
    plugin.ok(plugin.device->download, 0u, static_cast<void*>(&last), buffer, uint64_t{(kCount - 1) * 4}, uint64_t{4},
              second, ++plugin.sequence);
    plugin.sync(second);
    CHECK(last == 4.0f);
    // The event has passed, whoever asks.
    CHECK(plugin.call(plugin.device->event_query, 0u, event).code == PG_OK);
    // Nothing may write while the other stream reads.
    plugin.ok(plugin.device->event_record, 0u, event, second);
    plugin.ok(plugin.device->event_wait, 0u, event, first);
  }
}

TEST_CASE("A wait is for the recording at the time of the call, though the event is recorded again") {
  SUBJECT(plugin);
  constexpr int64_t kCount = 1 << 20;
  uint64_t first = plugin.stream(), second = plugin.stream(), idle = plugin.stream(), event = plugin.event();
  uint64_t buffer = plugin.alloc(kCount * 4);
  for (int round = 0; round < 10; round++) {
    Tensor large(PG_F32, {kCount});
    pg_tensor t = describe(large, buffer);
    const pg_number zero{};
    plugin.ok(plugin.device->fill, 0u, static_cast<const pg_tensor*>(&t), &zero, first, ++plugin.sequence);
    plugin.sync(first);
    occupy(plugin, first, buffer, kCount);
    plugin.ok(plugin.device->event_record, 0u, event, first);
    plugin.ok(plugin.device->event_wait, 0u, event, second);
    plugin.ok(plugin.device->event_record, 0u, event, idle);
    float last = 0;
    plugin.ok(plugin.device->download, 0u, static_cast<void*>(&last), buffer, uint64_t{(kCount - 1) * 4}, uint64_t{4},
              second, ++plugin.sequence);
    plugin.sync(second);
    CHECK(last == 4.0f);
    plugin.sync(first);
  }
}

TEST_CASE("An event that was never recorded has passed") {
  SUBJECT(plugin);
  uint64_t s = plugin.stream(), event = plugin.event();
  plugin.ok(plugin.device->event_query, 0u, event);
  plugin.ok(plugin.device->event_sync, 0u, event);
  plugin.ok(plugin.device->event_wait, 0u, event, s);
  plugin.sync(s);
}

TEST_CASE("Events tell the time between them") {
  SUBJECT(plugin);
  if (!PG_HAS(plugin.device, pg_device, event_elapsed) || plugin.device->event_elapsed == nullptr) return;
  constexpr int64_t kCount = 1 << 18;
  uint64_t s = plugin.stream(), start = plugin.event(), stop = plugin.event(), buffer = plugin.alloc(kCount * 4);
  plugin.ok(plugin.device->event_record, 0u, start, s);
  occupy(plugin, s, buffer, kCount);
  plugin.ok(plugin.device->event_record, 0u, stop, s);
  plugin.ok(plugin.device->event_sync, 0u, stop);
  double seconds = -1;
  plugin.ok(plugin.device->event_elapsed, 0u, start, stop, &seconds);
  CHECK((seconds >= 0 && seconds < 60));
}

TEST_CASE("An index out of range is an error that says which, and the device goes on") {
  SUBJECT(plugin);
  for (int round = 0; round < 3; round++) {
    Code code = plugin.try_run(lookup(7));
    CHECK(code.code == PG_E_INVALID_ARGUMENT);
    CHECK((code.error.flags & PG_ERROR_DEVICE_LOST) == 0);
    CHECK_THAT(code.message(), Catch::Contains("7") && Catch::Contains("[2]"));
    CHECK(plugin.run(lookup(2))[0].values == Values{1, 2, 5, 6});
  }
}

TEST_CASE("What a kernel does not compute is refused before anything runs, by name") {
  SUBJECT(plugin);
  Call call("exp");
  call.in(Tensor(PG_C64, {1}));
  const pg_tensor meta = describe(call.inputs[0]);
  const pg_tensor* list[] = {&meta};
  uint32_t groups[] = {1};
  int at = plugin.kernel("exp");
  REQUIRE(at >= 0);
  pg_call request = {PG_SIZE(pg_call, attrs), 0, call.op, 1, 1, list, groups, list, call.attrs.data()};
  Code code = plugin.call(plugin.kernels->supports, static_cast<uint32_t>(at), static_cast<const pg_call*>(&request));
  CHECK(code.code == PG_E_NOT_SUPPORTED);
  CHECK_THAT(code.message(), Catch::Contains("complex64"));
}
