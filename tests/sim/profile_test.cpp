// SPDX-License-Identifier: Apache-2.0
// What the device tells profiles of itself, while several threads give it work.
#include <atomic>
#include <thread>

#include "harness.hpp"
#include "perigee/profiler.h"

using namespace test;

TEST_CASE("What streams do at once is noted, while noting begins and ends") {
  constexpr int kUploads = 400, kRounds = 5;
  Sim sim;
  const auto* profiler = static_cast<const pg_profiler*>(library().iface(sim.self, PG_IFACE_PROFILER));
  REQUIRE(profiler != nullptr);
  std::atomic<uint64_t> number{1};
  std::atomic<int> failed{0}, begun{0};
  std::atomic<bool> go_on{true};
  const auto work = [&](uint64_t stream, uint64_t buffer) {
    const int64_t value = 1;
    for (int i = 0; i < kUploads || go_on; i++) {
      if (sim.call(sim.device->upload, 0u, buffer, uint64_t{0}, static_cast<const void*>(&value), uint64_t{8}, stream,
                   number++)
              .code != PG_OK)
        failed++;
      if (i == 0) begun++;
      if (i % 50 == 49 && sim.call(sim.device->stream_sync, 0u, stream).code != PG_OK) failed++;
    }
    if (sim.call(sim.device->stream_sync, 0u, stream).code != PG_OK) failed++;
  };
  const uint64_t streams[2] = {sim.stream(), sim.stream()}, buffers[2] = {sim.alloc(8), sim.alloc(8)};
  std::thread first(work, streams[0], buffers[0]), second(work, streams[1], buffers[1]);
  while (begun < 2) std::this_thread::yield();
  struct Told {
    uint64_t count = 0, wrong = 0;
  } told;
  const pg_activity_sink sink{PG_SIZE(pg_activity_sink, add), 0, &told, [](void* context, const pg_activity* each) {
                                Told& to = *static_cast<Told*>(context);
                                to.count++;
                                to.wrong += each->kind != PG_ACTIVITY_UPLOAD || each->bytes != 8 ||
                                            each->sequence == 0 || each->begin > each->end;
                              }};
  for (int round = 0; round < kRounds; round++) {
    uint64_t lost = 0;
    const uint64_t before = number;
    sim.ok(profiler->start, uint64_t{64});
    while (number < before + 20) std::this_thread::yield();
    sim.ok(profiler->stop);
    sim.ok(profiler->drain, &sink, &lost);
  }
  go_on = false;
  first.join();
  second.join();
  uint64_t lost = 0;
  sim.ok(profiler->start, uint64_t{64});
  const int64_t value = 1;
  sim.upload(buffers[0], &value, 8, streams[0]);
  sim.ok(sim.device->stream_sync, 0u, streams[0]);
  sim.ok(profiler->stop);
  const uint64_t until_now = told.count;
  sim.ok(profiler->drain, &sink, &lost);
  CHECK(told.count == until_now + 1);
  CHECK((told.wrong == 0 && lost == 0 && failed == 0));
}
