// SPDX-License-Identifier: Apache-2.0
// What capture_begin, capture_end, plan_launch and plan_destroy promise in plugin.h: on the stand-in, and on a GPU
// (tests/gpu/capture).
#include <cuda_runtime_api.h>

#include <atomic>
#include <thread>

#include "gpu.hpp"

using Catch::Matchers::Contains;
using test::Code;
using test::Gpu;
using test::Vector;
using Floats = std::vector<float>;

namespace {

uint64_t end(Gpu& gpu, uint64_t stream) {
  uint64_t plan = 0;
  gpu.ok(gpu.device->capture_end, stream, &plan);
  REQUIRE(plan != 0);
  return plan;
}

}  // namespace

TEST_CASE("what is captured runs when the plan is launched, each time, with what is in the buffers then") {
  GPU(gpu);
  const uint64_t stream = gpu.stream(), other = gpu.stream();
  Vector x = gpu.floats({10, 20, 30}), index = gpu.integers({2, 0}), y = gpu.floats({0, 0}), z = gpu.floats({0, 0});
  gpu.ok(gpu.device->capture_begin, stream);
  REQUIRE(gpu.select(x, index, y, stream, 1).code == PG_OK);
  REQUIRE(gpu.fill(z, 7, stream).code == PG_OK);
  const uint64_t plan = end(gpu, stream);
  CHECK(gpu.read(y) == Floats{0, 0});  // recorded, not run

  gpu.ok(gpu.device->plan_launch, plan, stream, uint64_t(2));
  gpu.ok(gpu.device->stream_sync, stream);
  CHECK(gpu.read(y) == Floats{30, 10});
  CHECK(gpu.read(z) == Floats{7, 7});

  gpu.write(index, {1, 1});
  gpu.ok(gpu.device->plan_launch, plan, other, uint64_t(3));
  gpu.ok(gpu.device->stream_sync, other);
  CHECK(gpu.read(y) == Floats{20, 20});
  gpu.ok(gpu.device->plan_destroy, plan);
}

TEST_CASE("a plan's faults are its launch's, every time, and leave plan and stream usable") {
  GPU(gpu);
  const uint64_t stream = gpu.stream();
  Vector x = gpu.floats({10, 20, 30}), index = gpu.integers({2, 5}), y = gpu.floats({0, 0});
  gpu.ok(gpu.device->capture_begin, stream);
  REQUIRE(gpu.select(x, index, y, stream, 1).code == PG_OK);
  const uint64_t plan = end(gpu, stream);
  gpu.ok(gpu.device->stream_sync, stream);
  for (uint64_t sequence : {21u, 22u}) {
    gpu.ok(gpu.device->plan_launch, plan, stream, sequence);
    Code sync = gpu.call(gpu.device->stream_sync, stream);
    CHECK(sync.code == PG_E_INVALID_ARGUMENT);
    CHECK(sync.message() == "index 5 at position [2] is out of range for axis 1; expected 0 to 2");
    CHECK(sync.error.native == static_cast<int64_t>(sequence + 1));  // the second piece of the launch
  }
  gpu.write(index, {2, 1});
  gpu.ok(gpu.device->plan_launch, plan, stream, uint64_t(23));
  gpu.ok(gpu.device->stream_sync, stream);
  CHECK(gpu.read(y) == Floats{30, 20});
  gpu.ok(gpu.device->plan_destroy, plan);
}

TEST_CASE("a plan's faults are its launch's, on several streams at a time") {
  GPU(gpu);
  const uint64_t streams[] = {gpu.stream(), gpu.stream()};
  Vector x = gpu.floats({10, 20, 30}), index = gpu.integers({2, 5}), y = gpu.floats({0, 0});
  gpu.ok(gpu.device->capture_begin, streams[0]);
  REQUIRE(gpu.select(x, index, y, streams[0], 0).code == PG_OK);
  const uint64_t plan = end(gpu, streams[0]);
  for (uint64_t round = 1; round <= 50; round++) {
    for (uint64_t i = 0; i < 2; i++) gpu.ok(gpu.device->plan_launch, plan, streams[i], 2 * round + i);
    for (uint64_t i = 0; i < 2; i++) {
      Code sync = gpu.call(gpu.device->stream_sync, streams[i]);
      CHECK(sync.code == PG_E_INVALID_ARGUMENT);
      CHECK(sync.error.native == static_cast<int64_t>(2 * round + i));
    }
  }
  gpu.ok(gpu.device->plan_destroy, plan);
}

// A synchronisation of a stream in the middle of its capture would end the capture.
TEST_CASE("a synchronisation on another thread waits outside of a capture or is refused") {
  GPU(gpu);
  const uint64_t stream = gpu.stream();
  Vector x = gpu.floats({10, 20, 30}), index = gpu.integers({2, 0}), y = gpu.floats({0, 0});
  std::atomic<bool> done{false};
  std::atomic<int> strange{0};
  std::thread other([&] {
    while (!done) {
      int32_t code = gpu.call(gpu.device->stream_sync, stream).code;
      if (code != PG_OK && code != PG_E_FAILED_PRECONDITION) strange++;
    }
  });
  for (uint64_t round = 1; round <= 100; round++) {
    gpu.ok(gpu.device->capture_begin, stream);
    Code select = gpu.select(x, index, y, stream, round);
    uint64_t plan = 0;
    Code end = gpu.call(gpu.device->capture_end, stream, &plan);
    CHECK(select.code == PG_OK);
    CHECK(end.code == PG_OK);
    if (end.code == PG_OK) gpu.ok(gpu.device->plan_destroy, plan);
  }
  done = true;
  other.join();
  CHECK(strange == 0);
}

TEST_CASE("what a capture cannot hold is refused, and the capture goes on") {
  GPU(gpu);
  const uint64_t stream = gpu.stream(), event = gpu.event();
  Vector z = gpu.floats({0, 0});
  float host[2] = {};
  gpu.ok(gpu.device->capture_begin, stream);
  REQUIRE(gpu.fill(z, 3, stream).code == PG_OK);
  auto refused = [](const Code& code) {
    CHECK(code.code == PG_E_FAILED_PRECONDITION);
    CHECK_THAT(code.message(), Contains("cannot be captured"));
  };
  refused(gpu.call(gpu.device->stream_sync, stream));
  refused(gpu.call(gpu.device->event_record, event, stream));
  refused(gpu.call(gpu.device->event_wait, event, stream));
  refused(gpu.call(gpu.device->upload, z.buffer, uint64_t(0), static_cast<const void*>(host), uint64_t(8), stream,
                   uint64_t(1)));
  refused(gpu.call(gpu.device->download, static_cast<void*>(host), z.buffer, uint64_t(0), uint64_t(8), stream,
                   uint64_t(1)));
  refused(gpu.call(gpu.device->capture_begin, stream));
  const uint64_t plan = end(gpu, stream);
  gpu.ok(gpu.device->plan_launch, plan, stream, uint64_t(4));
  gpu.ok(gpu.device->stream_sync, stream);
  CHECK(gpu.read(z) == Floats{3, 3});
  gpu.ok(gpu.device->plan_destroy, plan);
}

// Something beside the plugin asks for what no capture can hold, which spoils it.
TEST_CASE("a capture that somebody else has spoilt is reported, and the stream is as usable as before") {
  GPU(gpu);
  const uint64_t stream = gpu.stream();
  Vector z = gpu.floats({0, 0});
  uint64_t native = 0, plan = 99;
  gpu.ok(gpu.device->native, "stream", stream, &native);
  gpu.ok(gpu.device->capture_begin, stream);
  REQUIRE(gpu.fill(z, 3, stream).code == PG_OK);
  REQUIRE(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(native)) != cudaSuccess);
  Code ended = gpu.call(gpu.device->capture_end, stream, &plan);
  CHECK(ended.code == PG_E_FAILED_PRECONDITION);
  CHECK_THAT(ended.message(), Contains("cannot be captured") && Contains("cudaStreamEndCapture"));
  CHECK(plan == 0);
  REQUIRE(gpu.fill(z, 5, stream).code == PG_OK);
  gpu.ok(gpu.device->stream_sync, stream);
  CHECK(gpu.read(z) == Floats{5, 5});
  gpu.ok(gpu.device->capture_begin, stream);
  REQUIRE(gpu.fill(z, 7, stream).code == PG_OK);
  const uint64_t second = end(gpu, stream);
  gpu.ok(gpu.device->plan_launch, second, stream, uint64_t(1));
  gpu.ok(gpu.device->stream_sync, stream);
  CHECK(gpu.read(z) == Floats{7, 7});
  gpu.ok(gpu.device->plan_destroy, second);
}
