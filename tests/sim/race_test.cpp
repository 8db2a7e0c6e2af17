// SPDX-License-Identifier: Apache-2.0
// Accesses that nothing orders fail however fast the streams are, and name both operations.
#include <chrono>
#include <cstring>

#include "harness.hpp"

using namespace test;
using Catch::Contains;

namespace {

constexpr Setting kRaces = {"RACES", "1"};

Code try_upload(Sim& sim, uint64_t buffer, const void* from, uint64_t stream) {
  return sim.call(sim.device->upload, 0u, buffer, uint64_t{0}, from, uint64_t{8}, stream, ++sim.sequence);
}
Code try_download(Sim& sim, void* to, uint64_t buffer, uint64_t stream, uint64_t bytes = 8) {
  return sim.call(sim.device->download, 0u, to, buffer, uint64_t{0}, bytes, stream, ++sim.sequence);
}

}  // namespace

TEST_CASE("A missing wait is an error that names both operations, with and without jitter") {
  for (const char* jitter : {"0", "300"}) {
    Sim sim({kRaces, {"JITTER", jitter}});
    uint64_t first = sim.stream(), second = sim.stream(), event = sim.event(), buffer = sim.alloc(8);
    int64_t value = 1, seen = 0;
    sim.upload(buffer, &value, 8, first);
    const auto written = std::to_string(sim.sequence);
    Code code = try_download(sim, &seen, buffer, second);
    CHECK(code.code == PG_E_FAILED_PRECONDITION);
    CHECK_THAT(code.message(), Contains("race: download (number " + std::to_string(sim.sequence)) &&
                                   Contains("reads bytes 0..8") && Contains("upload (number " + written) &&
                                   Contains("writes; nothing makes it wait"));
    sim.ok(sim.device->event_record, 0u, event, first);
    sim.ok(sim.device->event_wait, 0u, event, second);
    sim.download(&seen, buffer, 8, second);
    sim.ok(sim.device->stream_sync, 0u, second);
    CHECK(seen == 1);
  }
}

TEST_CASE("A block that is reused before its reader has passed is an error") {
  Sim sim({kRaces});
  uint64_t writer = sim.stream(), reader = sim.stream(), event = sim.event(), buffer = sim.alloc(8);
  int64_t value = 1, seen = 0;
  sim.upload(buffer, &value, 8, writer);
  sim.ok(sim.device->event_record, 0u, event, writer);
  sim.ok(sim.device->event_wait, 0u, event, reader);
  sim.download(&seen, buffer, 8, reader);
  CHECK_THAT(try_upload(sim, buffer, &value, writer).message(),
             Contains("writes") && Contains("download") && Contains("reads; nothing makes it wait"));
  SECTION("an event orders them") {
    sim.ok(sim.device->event_record, 0u, event, reader);
    sim.ok(sim.device->event_wait, 0u, event, writer);
    CHECK(try_upload(sim, buffer, &value, writer).code == PG_OK);
  }
  SECTION("so does a host that waits") {
    sim.ok(sim.device->stream_sync, 0u, reader);
    CHECK(try_upload(sim, buffer, &value, writer).code == PG_OK);
  }
  SECTION("and one that waits for an event") {
    sim.ok(sim.device->event_record, 0u, event, reader);
    sim.ok(sim.device->event_sync, 0u, event);
    CHECK(try_upload(sim, buffer, &value, writer).code == PG_OK);
  }
  sim.ok(sim.device->stream_sync, 0u, writer);
  sim.ok(sim.device->stream_sync, 0u, reader);
}

TEST_CASE("A wait stands for what was recorded then, not for what the stream does later") {
  Sim sim({kRaces});
  uint64_t first = sim.stream(), second = sim.stream(), event = sim.event(), buffer = sim.alloc(8);
  int64_t value = 1, seen = 0;
  sim.ok(sim.device->event_record, 0u, event, first);
  sim.upload(buffer, &value, 8, first);
  sim.ok(sim.device->event_wait, 0u, event, second);
  CHECK(try_download(sim, &seen, buffer, second).code == PG_E_FAILED_PRECONDITION);
}

TEST_CASE("Order passes through streams in between, and over devices") {
  Sim sim({kRaces, {"DEVICES", "2"}});
  uint64_t a = sim.stream(), b = sim.stream(), c = sim.stream(1), e1 = sim.event(), e2 = sim.event();
  uint64_t buffer = sim.alloc(8), far = sim.alloc(8, 1);
  int64_t value = 5, seen = 0;
  sim.upload(buffer, &value, 8, a);
  sim.ok(sim.device->event_record, 0u, e1, a);
  sim.ok(sim.device->event_wait, 0u, e1, b);
  sim.ok(sim.device->event_record, 0u, e2, b);
  Code code = sim.call(sim.device->peer, 1u, far, uint64_t{0}, 0u, buffer, uint64_t{0}, uint64_t{8}, c, ++sim.sequence);
  CHECK_THAT(code.message(), Contains("of sim:1 reads bytes 0..8") && Contains("of sim:0 writes"));
  sim.ok(sim.device->event_wait, 1u, e2, c);
  sim.ok(sim.device->peer, 1u, far, uint64_t{0}, 0u, buffer, uint64_t{0}, uint64_t{8}, c, ++sim.sequence);
  sim.download(&seen, far, 8, c, 1);
  sim.ok(sim.device->stream_sync, 1u, c);
  CHECK(seen == 5);
}

TEST_CASE("Reads may overlap, and so may writes to other bytes") {
  Sim sim({kRaces});
  uint64_t a = sim.stream(), b = sim.stream(), buffer = sim.alloc(64);
  int64_t values[2] = {1, 2}, seen[2] = {};
  sim.ok(sim.device->upload, 0u, buffer, uint64_t{0}, static_cast<const void*>(values), uint64_t{8}, a, ++sim.sequence);
  sim.ok(sim.device->upload, 0u, buffer, uint64_t{8}, static_cast<const void*>(values), uint64_t{8}, b, ++sim.sequence);
  sim.ok(sim.device->stream_sync, 0u, a);
  sim.ok(sim.device->stream_sync, 0u, b);
  CHECK(try_download(sim, &seen[0], buffer, a).code == PG_OK);
  CHECK(try_download(sim, &seen[1], buffer, b).code == PG_OK);
  Code code = sim.call(sim.device->upload, 0u, buffer, uint64_t{4}, static_cast<const void*>(values), uint64_t{8}, b,
                       ++sim.sequence);
  CHECK_THAT(code.message(), Contains("bytes 4..12") && Contains("reads"));  // of the first half, by a
  sim.ok(sim.device->stream_sync, 0u, a);
  sim.ok(sim.device->stream_sync, 0u, b);
}

TEST_CASE("Freeing what the host has not waited for is an error even when it is over by chance") {
  Sim sim({kRaces});
  uint64_t s = sim.stream(), event = sim.event(), buffer = sim.alloc(8), other = 0;
  sim.ok(sim.device->alloc, 0u, PG_MEMORY_DEVICE, uint64_t{8}, &other);
  int64_t value = 1;
  sim.upload(other, &value, 8, s);
  sim.upload(buffer, &value, 8, s);
  sim.ok(sim.device->event_record, 0u, event, s);
  Code code = sim.call(sim.device->free, 0u, PG_MEMORY_DEVICE, other);
  CHECK_THAT(code.message(), Contains("free: upload (number 1)") && Contains("the host has not waited"));
  sim.ok(sim.device->stream_sync, 0u, s);
  sim.ok(sim.device->free, 0u, PG_MEMORY_DEVICE, other);
}

TEST_CASE("Staging memory that the host writes to before its upload has passed is told from what it may reuse") {
  Sim sim({kRaces});
  uint64_t s = sim.stream(), buffer = sim.alloc(8), address = 0;
  sim.ok(sim.device->alloc, 0u, PG_MEMORY_PINNED, uint64_t{64}, &address);
  auto* staging = reinterpret_cast<char*>(address);
  std::memset(staging, 1, 64);
  sim.upload(buffer, staging, 8, s);
  sim.ok(sim.device->stream_sync, 0u, s);
  std::memset(staging, 2, 64);  // it has passed
  sim.occupy(s);
  sim.upload(buffer, staging, 8, s);
  const auto number = std::to_string(sim.sequence);
  staging[3] = 7;
  CHECK_THAT(sim.call(sim.device->stream_sync, 0u, s).message(),
             Contains("the host changed what upload (number " + number) && Contains("before it had waited"));
  uint64_t second = sim.stream();
  sim.upload(buffer, staging, 8, s);
  CHECK_THAT(try_download(sim, staging, sim.alloc(8), second).message(),  // the device itself writes there
             Contains("race: download") && Contains("upload"));
  sim.ok(sim.device->stream_sync, 0u, s);
  sim.ok(sim.device->free, 0u, PG_MEMORY_PINNED, address);
}

TEST_CASE("Kernels race too, by their operators' names") {
  Sim sim({kRaces});
  uint64_t s = sim.stream(), buffer = sim.alloc(16);
  float values[4] = {1, 2, 3, 4};
  sim.ok(sim.device->upload, 0u, buffer, uint64_t{0}, static_cast<const void*>(values), uint64_t{16}, s,
         ++sim.sequence);
  sim.ok(sim.device->stream_sync, 0u, s);
  // The harness waits for each call: what it computes is never in the way of what comes next.
  Operation add = {"add", {{f32({2}, {1, 2})}, {f32({2}, {3, 4})}}, {}, {out(PG_F32, {2})}};
  check(sim.run(add)[0], {4, 6});
  check(sim.run(add)[0], {4, 6});
}

TEST_CASE("A link takes its latency, and its bytes their share of the bandwidth") {
  using Clock = std::chrono::steady_clock;
  Sim sim({{"DEVICES", "3"}, {"LINKS", "0-1:10MB/2000,host-0:/0"}});
  uint64_t s = sim.stream(1), t = sim.stream(2), from = sim.alloc(1 << 20), to = sim.alloc(1 << 20, 1),
           far = sim.alloc(1 << 20, 2);
  const auto begin = Clock::now();
  sim.ok(sim.device->peer, 1u, to, uint64_t{0}, 0u, from, uint64_t{0}, uint64_t{1} << 20, s, ++sim.sequence);
  sim.ok(sim.device->stream_sync, 1u, s);
  CHECK(Clock::now() - begin >= std::chrono::milliseconds(102));  // 1 MB at 10 MB/s, and 2 ms
  sim.ok(sim.device->peer, 2u, far, uint64_t{0}, 0u, from, uint64_t{0}, uint64_t{1} << 20, t, ++sim.sequence);
  sim.ok(sim.device->stream_sync, 2u, t);  // no such link: at once
}

TEST_CASE("One link carries one transfer at a time in each direction") {
  using Clock = std::chrono::steady_clock;
  Sim sim({{"DEVICES", "2"}, {"LINKS", "*:/20000"}});
  uint64_t a = sim.stream(1), b = sim.stream(1), from = sim.alloc(8), one = sim.alloc(8, 1), two = sim.alloc(8, 1);
  const auto begin = Clock::now();
  sim.ok(sim.device->peer, 1u, one, uint64_t{0}, 0u, from, uint64_t{0}, uint64_t{8}, a, ++sim.sequence);
  sim.ok(sim.device->peer, 1u, two, uint64_t{0}, 0u, from, uint64_t{0}, uint64_t{8}, b, ++sim.sequence);
  sim.ok(sim.device->stream_sync, 1u, a);
  sim.ok(sim.device->stream_sync, 1u, b);
  CHECK(Clock::now() - begin >= std::chrono::milliseconds(40));
}

TEST_CASE("Coverage is switched by operator and dtype") {
  Operation half = {"exp", {{{PG_F16, {1}, {0}}}}, {}, {out(PG_F16, {1})}};
  Operation single = {"exp", {{f32({1}, {0})}}, {}, {out(PG_F32, {1})}};
  Operation wide = {"neg", {{{PG_F64, {1}, {1}}}}, {}, {out(PG_F64, {1})}};
  Sim sim({{"MISSING", "exp:float16|bfloat16,*:float64"}});
  CHECK_THAT(sim.try_run(half).message(), Contains("PERIGEE_SIM_MISSING says no exp of float16"));
  CHECK(sim.try_run(half).code == PG_E_NOT_SUPPORTED);
  check(sim.run(single)[0], {1});
  CHECK_THAT(sim.try_run(wide).message(), Contains("no neg of float64"));
}

TEST_CASE("Faults are set while it runs: the nth, or all from there on") {
  Sim sim;
  Operation op = {"exp", {{f32({1}, {0})}}, {}, {out(PG_F32, {1})}};
  uint64_t none = 0, buffer = 0;
  sim.run(op);
  sim.ok(sim.device->native, 0u, "fail.launch", uint64_t{2}, &none);
  check(sim.run(op)[0], {1});
  CHECK_THAT(sim.try_run(op).message(), Contains("launch"));
  check(sim.run(op)[0], {1});
  sim.ok(sim.device->native, 0u, "fail.alloc+", uint64_t{1}, &none);
  for (int i = 0; i < 3; i++)
    CHECK(sim.call(sim.device->alloc, 0u, PG_MEMORY_DEVICE, uint64_t{8}, &buffer).code == PG_E_OUT_OF_MEMORY);
  sim.ok(sim.device->native, 0u, "fail.alloc", uint64_t{0}, &none);
  sim.alloc(8);
  CHECK(sim.call(sim.device->native, 0u, "fail.sun", uint64_t{1}, &none).code == PG_E_NOT_SUPPORTED);
}
