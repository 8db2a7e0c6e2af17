// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "harness.hpp"

using namespace test;

TEST_CASE("Uploads read the host's memory late, downloads write it late") {
  Sim sim;
  uint64_t s = sim.stream(), buffer = sim.alloc(8), event = sim.event();
  int64_t staging = 1, seen = -1;
  sim.occupy(s);
  sim.upload(buffer, &staging, 8, s);
  staging = 2;  // what a host must not do before the stream has passed the copy
  sim.download(&seen, buffer, 8, s);
  CHECK(seen == -1);
  sim.ok(sim.device->event_record, 0u, event, s);  // and its lock orders the accesses above for the thread sanitizer
  sim.ok(sim.device->stream_sync, 0u, s);
  CHECK(seen == 2);
}

TEST_CASE("A stream keeps its order, with and without jitter") {
  for (const char* jitter : {"0", "300"}) {
    Sim sim({{"JITTER", jitter}, {"SEED", "5"}});
    uint64_t s = sim.stream(), buffer = sim.alloc(8);
    std::vector<int64_t> values(20), seen(20, -1);
    for (int64_t i = 0; i < 20; i++) {
      values[static_cast<size_t>(i)] = i;
      sim.upload(buffer, &values[static_cast<size_t>(i)], 8, s);
      sim.download(&seen[static_cast<size_t>(i)], buffer, 8, s);
    }
    sim.ok(sim.device->stream_sync, 0u, s);
    CHECK(seen == values);
  }
}

TEST_CASE("An event makes another stream wait") {
  Sim sim({{"DEVICES", "2"}, {"JITTER", "200"}});
  for (uint32_t other : {0u, 1u}) {
    uint64_t first = sim.stream(), second = sim.stream(other), event = sim.event(), buffer = sim.alloc(8);
    uint64_t target = sim.alloc(8, other);
    int64_t value = 42, seen = -1;
    sim.occupy(first);
    sim.upload(buffer, &value, 8, first);
    sim.ok(sim.device->event_record, 0u, event, first);
    CHECK(sim.call(sim.device->event_query, 0u, event).code == PG_E_BUSY);
    sim.ok(sim.device->event_wait, other, event, second);
    sim.ok(sim.device->peer, other, target, uint64_t{0}, 0u, buffer, uint64_t{0}, uint64_t{8}, second, uint64_t{1});
    sim.download(&seen, target, 8, second, other);
    sim.ok(sim.device->stream_sync, other, second);
    CHECK(seen == 42);
    CHECK(sim.call(sim.device->event_query, 0u, event).code == PG_OK);
  }
}

TEST_CASE("Without a wait, streams run side by side") {
  Sim sim;
  uint64_t slow = sim.stream(), quick = sim.stream(), event = sim.event(), buffer = sim.alloc(8);
  int64_t value = 1;
  sim.occupy(slow);
  sim.ok(sim.device->event_record, 0u, event, slow);
  sim.upload(buffer, &value, 8, quick);
  sim.ok(sim.device->stream_sync, 0u, quick);
  CHECK(sim.call(sim.device->event_query, 0u, event).code == PG_E_BUSY);
  sim.ok(sim.device->event_sync, 0u, event);
}

TEST_CASE("Events tell the time between them") {
  Sim sim;
  uint64_t s = sim.stream(), start = sim.event(), stop = sim.event();
  double seconds = -1;
  CHECK(sim.call(sim.device->event_elapsed, 0u, start, stop, &seconds).code == PG_E_FAILED_PRECONDITION);
  sim.ok(sim.device->event_record, 0u, start, s);
  sim.occupy(s);
  sim.ok(sim.device->event_record, 0u, stop, s);
  sim.ok(sim.device->event_sync, 0u, stop);
  sim.ok(sim.device->event_elapsed, 0u, start, stop, &seconds);
  CHECK(seconds > 0);
  CHECK(seconds < 60);
}

TEST_CASE("An event that was never recorded has passed, one recorded again is new") {
  Sim sim;
  uint64_t s = sim.stream(), event = sim.event();
  sim.ok(sim.device->event_sync, 0u, event);
  sim.ok(sim.device->event_wait, 0u, event, s);
  sim.ok(sim.device->event_record, 0u, event, s);
  sim.ok(sim.device->event_sync, 0u, event);
  sim.occupy(s);
  sim.ok(sim.device->event_record, 0u, event, s);
  CHECK(sim.call(sim.device->event_query, 0u, event).code == PG_E_BUSY);
}

TEST_CASE("Streams may be driven from several threads") {
  Sim sim({{"JITTER", "20"}});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; t++) {
    uint64_t s = sim.stream(), buffer = sim.alloc(8);
    threads.emplace_back([&, s, buffer, t] {
      for (int64_t i = 0; i < 50; i++) {
        int64_t value = i * 4 + t, seen = -1;
        pg_error error = pg::make_error();
        sim.device->upload(sim.self, 0, buffer, 0, &value, 8, s, 1, &error);
        sim.device->download(sim.self, 0, &seen, buffer, 0, 8, s, 2, &error);
        if (sim.device->stream_sync(sim.self, 0, s, &error) != PG_OK || seen != value) wrong++;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("A stream that is destroyed finishes its work") {
  Sim sim;
  uint64_t s = 0, buffer = sim.alloc(8);
  int64_t value = 3, seen = 0;
  sim.ok(sim.device->stream_create, 0u, &s);
  sim.occupy(s);
  sim.upload(buffer, &value, 8, s);
  sim.download(&seen, buffer, 8, s);
  sim.ok(sim.device->stream_destroy, 0u, s);
  CHECK(seen == 3);
}
