// SPDX-License-Identifier: Apache-2.0
// Captures that fail where the stand-in is told to, and what only it can count.
#include "gpu.hpp"
#include "standin.hpp"

using Catch::Matchers::Contains;
using test::Code;
using test::Gpu;
using test::Vector;
using Floats = std::vector<float>;

TEST_CASE("a capture that CUDA gives up is reported, and the stream is as usable as before") {
  standin::reset();
  Gpu gpu;
  const uint64_t stream = gpu.stream();
  Vector z = gpu.floats({0, 0});
  uint64_t plan = 99;
  SECTION("while it was going on") {
    gpu.ok(gpu.device->capture_begin, stream);
    standin::fail("cudaStreamEndCapture", 1, cudaErrorStreamCaptureInvalidated);
    // The stand-in's injection leaves the capture open, so that it is ended twice.
    Code ended = gpu.call(gpu.device->capture_end, stream, &plan);
    CHECK(ended.code == PG_E_FAILED_PRECONDITION);
    CHECK_THAT(ended.message(), Contains("cannot be captured") && Contains("cudaStreamEndCapture"));
    cudaGraph_t graph = nullptr;
    uint64_t native = 0;
    gpu.ok(gpu.device->native, "stream", stream, &native);
    REQUIRE(cudaStreamEndCapture(reinterpret_cast<cudaStream_t>(native), &graph) == cudaSuccess);
    REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  }
  SECTION("when the graph is made ready") {
    gpu.ok(gpu.device->capture_begin, stream);
    REQUIRE(gpu.fill(z, 3, stream).code == PG_OK);
    standin::fail("cudaGraphInstantiate", 1, cudaErrorNotSupported);
    Code ended = gpu.call(gpu.device->capture_end, stream, &plan);
    CHECK(ended.code == PG_E_FAILED_PRECONDITION);
    CHECK_THAT(ended.message(), Contains("cudaGraphInstantiate"));
  }
  SECTION("at its start") {
    standin::fail("cudaStreamBeginCapture", 1, cudaErrorStreamCaptureImplicit);
    CHECK(gpu.call(gpu.device->capture_begin, stream).code == PG_E_FAILED_PRECONDITION);
    CHECK_THAT(gpu.call(gpu.device->capture_end, stream, &plan).message(), Contains("is not being captured"));
  }
  CHECK(plan == 0);
  REQUIRE(gpu.fill(z, 5, stream).code == PG_OK);
  gpu.ok(gpu.device->stream_sync, stream);
  CHECK(gpu.read(z) == Floats{5, 5});
  CHECK(standin::live().graphs == 0);
}

TEST_CASE("a stream that is destroyed while it is captured takes the capture along") {
  standin::reset();
  Gpu gpu;
  const standin::Live before = standin::live();
  uint64_t stream = 0;
  gpu.ok(gpu.device->stream_create, &stream);
  gpu.ok(gpu.device->capture_begin, stream);
  gpu.ok(gpu.device->stream_destroy, stream);
  CHECK(standin::live() == before);
}

TEST_CASE("a plan belongs to a device, and keeps the plugin busy") {
  standin::reset();
  standin::set_devices(2);
  Gpu gpu;
  const uint64_t stream = gpu.stream();
  gpu.ok(gpu.device->capture_begin, stream);
  uint64_t plan = 0;
  gpu.ok(gpu.device->capture_end, stream, &plan);
  pg_error error = pg::make_error();
  CHECK(gpu.device->plan_launch(gpu.self, 1, plan, stream, 1, &error) == PG_E_INVALID_ARGUMENT);
  CHECK_THAT(error.message, Contains("the plan belongs to cuda:0, the call is for cuda:1"));
  CHECK(gpu.call(gpu.device->plan_launch, uint64_t(0), stream, uint64_t(1)).code == PG_E_INVALID_ARGUMENT);
  gpu.ok(gpu.device->plan_launch, plan, stream, uint64_t(1));  // an empty plan does nothing
  gpu.ok(gpu.device->stream_sync, stream);
  gpu.ok(gpu.device->plan_destroy, plan);
}
