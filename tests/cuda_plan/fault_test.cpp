// SPDX-License-Identifier: Apache-2.0
// Faults: which of several is told, and to whom.
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
