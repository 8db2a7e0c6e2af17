// SPDX-License-Identifier: Apache-2.0
// Faults: which of several is told, and to whom.
#include "fault_watch.hpp"
#include "gpu.hpp"
#include "standin.hpp"

using test::Code;
using test::Gpu;
using test::Vector;

namespace {

struct Faulty {
  Gpu gpu;
  Vector x = gpu.floats({10, 20, 30}), y = gpu.floats({0, 0, 0, 0});
  void launch(uint64_t stream, uint64_t sequence, std::vector<int64_t> index) {
    Vector where = gpu.integers(std::move(index));
    REQUIRE(gpu.select(x, where, y, stream, sequence).code == PG_OK);
  }
  Code sync(uint64_t stream) { return gpu.call(gpu.device->stream_sync, stream); }
};

void is_fault(const Code& code, int64_t sequence, const std::string& text) {
  CHECK(code.code == PG_E_INVALID_ARGUMENT);
  CHECK(code.error.native == sequence);
  CHECK(code.message() == text + " is out of range for axis 1; expected 0 to 2");
  CHECK(code.error.flags == 0);
}

}  // namespace

TEST_CASE("of several faults the first launch's is told, and of one launch the lowest position") {
  standin::reset();
  for (const char* order : {"forward", "backward", "shuffle:5"}) {
    setenv("PERIGEE_STANDIN_ORDER", order, 1);
    standin::reset();
    Faulty f;
    const uint64_t stream = f.gpu.stream();
    f.launch(stream, 5, {0, 1, 2, 0});
    f.launch(stream, 6, {0, 8, -1, 9});
    f.launch(stream, 7, {4, 4, 4, 4});
    is_fault(f.sync(stream), 6, "index 8 at position [2]");
    CHECK(f.sync(stream).code == PG_OK);  // taken off the stream
    CHECK(f.gpu.read(f.y)[0] == 10);      // what could be done was done
    f.launch(stream, 8, {0, 0, 0, 3});
    is_fault(f.sync(stream), 8, "index 3 at position [4]");
  }
  unsetenv("PERIGEE_STANDIN_ORDER");
  standin::reset();
}

TEST_CASE("an event tells what its stream had noted when it was recorded") {
  standin::reset();
  Faulty f;
  const uint64_t stream = f.gpu.stream(), before = f.gpu.event(), after = f.gpu.event();
  f.launch(stream, 1, {0, 0, 0, 0});
  f.gpu.ok(f.gpu.device->event_record, before, stream);
  f.launch(stream, 2, {0, 0, 3, 0});
  f.gpu.ok(f.gpu.device->event_record, after, stream);
  f.gpu.ok(f.gpu.device->event_sync, before);
  is_fault(f.gpu.call(f.gpu.device->event_sync, after), 2, "index 3 at position [3]");
  is_fault(f.sync(stream), 2, "index 3 at position [3]");  // an event takes nothing off
  f.gpu.ok(f.gpu.device->event_record, after, stream);
  f.gpu.ok(f.gpu.device->event_sync, after);
}

TEST_CASE("a stream that waits for an event adopts its fault") {
  standin::reset();
  standin::set_jitter(300);
  Faulty f;
  const uint64_t first = f.gpu.stream(), second = f.gpu.stream(), third = f.gpu.stream(), event = f.gpu.event();
  f.launch(first, 1, {0, 7, 0, 0});
  f.gpu.ok(f.gpu.device->event_record, event, first);
  f.gpu.ok(f.gpu.device->event_wait, event, second);
  f.gpu.ok(f.gpu.device->event_record, event, second);
  f.gpu.ok(f.gpu.device->event_wait, event, third);
  is_fault(f.sync(third), 1, "index 7 at position [2]");
  is_fault(f.sync(second), 1, "index 7 at position [2]");
  is_fault(f.sync(first), 1, "index 7 at position [2]");
  CHECK(f.sync(second).code == PG_OK);
}

namespace {

// Kernels that a body launches: those that look for faults, where nothing else is launched.
template <class Body>
uint64_t launches(Body&& body) {
  auto count = [] { return standin::calls()["cudaLaunchKernel"]; };
  uint64_t before = count();
  body();
  return count() - before;
}

}  // namespace

TEST_CASE("who waits pays for launches that can fault, and only once") {
  standin::reset();
  Faulty f;
  const uint64_t stream = f.gpu.stream(), event = f.gpu.event();
  auto sync = [&] { CHECK(f.sync(stream).code == PG_OK); };
  auto record = [&] { f.gpu.ok(f.gpu.device->event_record, event, stream); };
  CHECK(launches(sync) == 0);
  f.launch(stream, 1, {0, 1, 2, 0});
  CHECK(launches(sync) == 1);
  CHECK(launches(sync) == 0);
  CHECK(launches(record) == 0);
  f.launch(stream, 2, {0, 1, 2, 0});
  CHECK(launches(record) == 1);
  f.gpu.ok(f.gpu.device->event_sync, event);
  CHECK(launches(record) == 0);
  CHECK(launches(sync) == 0);
}

TEST_CASE("a fault that an event told stays until the stream has told it, and costs nothing afterwards") {
  standin::reset();
  Faulty f;
  const uint64_t stream = f.gpu.stream(), other = f.gpu.stream(), event = f.gpu.event();
  f.launch(stream, 3, {0, 9, 2, 0});
  f.gpu.ok(f.gpu.device->event_record, event, stream);
  f.gpu.ok(f.gpu.device->event_wait, event, other);
  is_fault(f.gpu.call(f.gpu.device->event_sync, event), 3, "index 9 at position [2]");
  f.launch(stream, 4, {0, 1, 2, 0});
  for (uint64_t each : {stream, other}) {
    is_fault(f.sync(each), 3, "index 9 at position [2]");
    CHECK(launches([&] { CHECK(f.sync(each).code == PG_OK); }) == 0);
  }
}

TEST_CASE("a launch that is about to happen is not taken for one that has been waited for") {
  cuda::FaultWatch watch;
  CHECK_FALSE(watch.is_pending());
  watch.begin();
  watch.saw(watch.enqueued());  // a synchronisation on another thread
  CHECK(watch.is_pending());
  watch.end();
  watch.saw(watch.enqueued());
  CHECK_FALSE(watch.is_pending());
  { cuda::FaultWatched launch(watch); }
  CHECK(watch.is_pending());
  watch.saw(1);  // of old
  CHECK(watch.is_pending());
  watch.saw(2);
  CHECK_FALSE(watch.is_pending());
}

TEST_CASE("events keep no time, and the device offers none") {
  standin::reset();
  Faulty f;
  const uint64_t stream = f.gpu.stream(), other = f.gpu.stream(), event = f.gpu.event();
  for (int i = 0; i < 3; i++) {
    f.launch(stream, 1, {0, 1, 2, 0});
    f.gpu.ok(f.gpu.device->event_record, event, stream);
    f.gpu.ok(f.gpu.device->event_wait, event, other);
  }
  CHECK(standin::live().events > 1);
  CHECK(standin::timed_events() == 0);
  CHECK(f.gpu.device->event_elapsed == nullptr);
}
