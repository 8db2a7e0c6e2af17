// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

using namespace test;

namespace {

const Operation kBadLookup = {"embedding", {{f32({3, 1}, {1, 2, 3})}, {i64({2}, {0, 7})}}, {}, {out(PG_F32, {2, 1})}};
const Operation kGoodLookup = {"embedding", {{f32({3, 1}, {1, 2, 3})}, {i64({2}, {0, 2})}}, {}, {out(PG_F32, {2, 1})}};

}  // namespace

TEST_CASE("An index out of range poisons its stream and says which") {
  Sim sim;
  Code code = sim.try_run(kBadLookup);
  CHECK(code.code == PG_E_INVALID_ARGUMENT);
  CHECK_THAT(code.message(), Catch::Contains("token 7 at position [2]") && Catch::Contains("expected 0 to 2"));
  CHECK(code.error.native == static_cast<int64_t>(sim.sequence));
  check(sim.run(kGoodLookup)[0], {1, 3});  // the device goes on
}

TEST_CASE("Work behind a failure is skipped, the failure is reported once, then the stream works again") {
  Sim sim({{"FAIL", "copy:1"}});
  uint64_t s = sim.stream(), buffer = sim.alloc(8);
  int64_t value = 9, seen = -1;
  sim.upload(buffer, &value, 8, s);
  uint64_t failed = sim.sequence;
  sim.download(&seen, buffer, 8, s);
  Code code = sim.call(sim.device->stream_sync, 0u, s);
  CHECK(code.code == PG_E_INTERNAL);
  CHECK(code.error.native == static_cast<int64_t>(failed));
  CHECK(seen == -1);
  sim.ok(sim.device->stream_sync, 0u, s);
  sim.upload(buffer, &value, 8, s);
  sim.download(&seen, buffer, 8, s);
  sim.ok(sim.device->stream_sync, 0u, s);
  CHECK(seen == 9);
}

TEST_CASE("Poison passes through events") {
  Sim sim({{"FAIL", "copy:1"}});
  uint64_t first = sim.stream(), second = sim.stream(), event = sim.event(), buffer = sim.alloc(8);
  int64_t value = 9, seen = -1;
  sim.upload(buffer, &value, 8, first);
  auto failed = static_cast<int64_t>(sim.sequence);
  sim.ok(sim.device->event_record, 0u, event, first);
  sim.ok(sim.device->event_wait, 0u, event, second);
  sim.download(&seen, buffer, 8, second);
  CHECK(sim.call(sim.device->event_sync, 0u, event).error.native == failed);
  Code code = sim.call(sim.device->stream_sync, 0u, second);
  CHECK(code.code == PG_E_INTERNAL);
  CHECK(code.error.native == failed);
  CHECK(seen == -1);
  CHECK(sim.call(sim.device->stream_sync, 0u, first).code == PG_E_INTERNAL);
}

TEST_CASE("Memory has its limit, and comes back when freed") {
  Sim sim({{"MEMORY", "1MB"}});
  uint64_t a = 0, b = 0;
  sim.ok(sim.device->alloc, 0u, PG_MEMORY_DEVICE, uint64_t{700 << 10}, &a);
  Code code = sim.call(sim.device->alloc, 0u, PG_MEMORY_DEVICE, uint64_t{400 << 10}, &b);
  CHECK(code.code == PG_E_OUT_OF_MEMORY);
  CHECK_THAT(code.message(), Catch::Contains("1048576"));
  sim.ok(sim.device->free, 0u, PG_MEMORY_DEVICE, a);
  sim.alloc(400 << 10);
}

TEST_CASE("The nth allocation and the nth launch fail on request") {
  Sim sim({{"FAIL", "alloc:4,launch:2"}});
  sim.run(kGoodLookup);  // three buffers
  uint64_t buffer = 0;
  CHECK(sim.call(sim.device->alloc, 0u, PG_MEMORY_DEVICE, uint64_t{8}, &buffer).code == PG_E_OUT_OF_MEMORY);
  CHECK_THAT(sim.try_run(kGoodLookup).message(), Catch::Contains("launch 2"));
  check(sim.run(kGoodLookup)[0], {1, 3});
}

TEST_CASE("A lost device stays lost, another goes on") {
  Sim sim({{"DEVICES", "2"}, {"FAIL", "lost:1"}});
  uint64_t other = sim.stream(1), kept = sim.alloc(8, 1);
  Code code = sim.try_run(kGoodLookup);
  CHECK(code.code != PG_OK);
  CHECK((code.error.flags & PG_ERROR_DEVICE_LOST) != 0);
  uint64_t buffer = 0;
  code = sim.call(sim.device->alloc, 0u, PG_MEMORY_DEVICE, uint64_t{8}, &buffer);
  CHECK((code.error.flags & PG_ERROR_DEVICE_LOST) != 0);
  int64_t value = 4, seen = 0;
  sim.upload(kept, &value, 8, other, 1);
  sim.download(&seen, kept, 8, other, 1);
  sim.ok(sim.device->stream_sync, 1u, other);
  CHECK(seen == 4);
}

TEST_CASE("Kernels can be switched off, and are back the next time") {
  {
    Sim sim({{"MISSING", "conv2d,nonzero"}});
    CHECK(sim.kernel("conv2d") == -1);
    CHECK(sim.kernel("nonzero") == -1);
    CHECK(sim.kernel("add") >= 0);
  }
  Sim sim;
  CHECK(sim.kernel("conv2d") >= 0);
}

TEST_CASE("A dtype that is not computed with is refused with its name") {
  Sim sim;
  Operation complex = {"exp", {{{PG_C64, {1}, {}}}}, {}, {out(PG_C64, {1})}};
  Code code = sim.try_run(complex);
  CHECK(code.code == PG_E_NOT_SUPPORTED);
  CHECK_THAT(code.message(), Catch::Contains("complex64"));
}
