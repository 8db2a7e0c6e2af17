// SPDX-License-Identifier: Apache-2.0
// What the CUDA plugin makes of drivers, devices and memory that are not as it would like them.
#include <catch2/catch.hpp>

#include "../contract/host.hpp"
#include "scenario.hpp"
#include "standin.hpp"

namespace {

using contract::Code;
using contract::Plugin;

struct Fresh {
  Fresh() { standin::reset(); }
  ~Fresh() {
    standin::set_driver(standin::Driver::kPresent);
    standin::reset();
  }
};

std::string why_not() {
  Plugin plugin(CUDA_PLUGIN);
  std::string reason;
  CHECK(plugin.count(&reason) == 0);
  return reason;
}

}  // namespace

TEST_CASE("Without a driver, with an old one, without devices: the reason says so") {
  Fresh fresh;
  standin::set_driver(standin::Driver::kAbsent);
  CHECK_THAT(why_not(), Catch::Contains("no NVIDIA driver") && Catch::Contains("install"));
  standin::set_driver(standin::Driver::kOld);
  CHECK_THAT(why_not(), Catch::Contains("too old") && Catch::Contains("12.2") && Catch::Contains("13.0"));
  standin::set_driver(standin::Driver::kNoDevice);
  CHECK_THAT(why_not(), Catch::Contains("cudaErrorNoDevice"));
  standin::set_driver(standin::Driver::kPresent);
  standin::set_capability(0, 8, 0);
  CHECK_THAT(why_not(), Catch::Contains("compute capability 8.0"));
}

TEST_CASE("Devices that are too old are left out, the others are counted from 0") {
  Fresh fresh;
  standin::set_devices(3);
  standin::set_capability(1, 7, 5);
  Plugin plugin(CUDA_PLUGIN);
  CHECK(plugin.count() == 2);
  pg_device_properties p{};
  p.size = PG_SIZE(pg_device_properties, reserved);
  plugin.ok(plugin.device->properties, 1u, &p);
  CHECK_THAT(p.name, Catch::Contains("GPU 2"));
}

TEST_CASE("Several devices: each has its streams, bytes go between them, one is lost and the others go on") {
  Fresh fresh;
  standin::set_devices(3);
  standin::set_jitter(200);
  scenario::Outcome outcome = scenario::run(3);
  INFO(outcome.text());
  CHECK(outcome.right);

  Plugin plugin(CUDA_PLUGIN);
  REQUIRE(plugin.count() == 3);
  uint64_t buffer[3], stream[3];
  for (uint32_t i = 0; i < 3; i++) buffer[i] = plugin.alloc(8, i), stream[i] = plugin.stream(i);
  int64_t value = 77, got = 0;
  plugin.upload(buffer[0], &value, 8, stream[0], 0);
  plugin.sync(stream[0], 0);
  plugin.ok(plugin.device->peer, 2u, buffer[2], uint64_t{0}, 0u, buffer[0], uint64_t{0}, uint64_t{8}, stream[2],
            ++plugin.sequence);
  plugin.download(&got, buffer[2], 8, stream[2], 2);
  plugin.sync(stream[2], 2);
  CHECK(got == 77);

  // A stream of another device is refused.
  Code code = plugin.call(plugin.device->upload, 1u, buffer[1], uint64_t{0}, static_cast<const void*>(&value),
                          uint64_t{8}, stream[0], ++plugin.sequence);
  CHECK(code.code == PG_E_INVALID_ARGUMENT);

  standin::fail("copy", 1, cudaErrorIllegalAddress);
  plugin.upload(buffer[1], &value, 8, stream[1], 1);
  code = plugin.call(plugin.device->stream_sync, 1u, stream[1]);
  CHECK((code.error.flags & PG_ERROR_DEVICE_LOST) != 0);
  uint64_t more = 0;
  code = plugin.call(plugin.device->alloc, 1u, PG_MEMORY_DEVICE, uint64_t{8}, &more);
  CHECK((code.error.flags & PG_ERROR_DEVICE_LOST) != 0);
  value = 78;
  plugin.upload(buffer[2], &value, 8, stream[2], 2);
  plugin.download(&got, buffer[2], 8, stream[2], 2);
  plugin.sync(stream[2], 2);
  CHECK(got == 78);
}

TEST_CASE("Memory that is short is told with its size, and comes back") {
  Fresh fresh;
  standin::set_memory(1 << 20);
  Plugin plugin(CUDA_PLUGIN);
  uint64_t first = plugin.alloc(700 << 10), second = 0;
  Code code = plugin.call(plugin.device->alloc, 0u, PG_MEMORY_DEVICE, uint64_t{400 << 10}, &second);
  CHECK(code.code == PG_E_OUT_OF_MEMORY);
  CHECK_THAT(code.message(), Catch::Contains("409600") && Catch::Contains("1048576"));
  plugin.free(first);
  plugin.alloc(400 << 10);
}

TEST_CASE("Close answers busy while something is alive") {
  Fresh fresh;
  Plugin plugin(CUDA_PLUGIN);
  uint64_t buffer = plugin.alloc(8);
  Code code;
  code.code = contract::load(CUDA_PLUGIN).close(plugin.self, &code.error);
  CHECK(code.code == PG_E_BUSY);
  plugin.free(buffer);
}

TEST_CASE("Host memory is read and written when the stream gets there") {
  Fresh fresh;
  Plugin plugin(CUDA_PLUGIN);
  standin::set_jitter(20000);
  uint64_t s = plugin.stream(), buffer = plugin.alloc(8), pinned = 0;
  plugin.ok(plugin.device->alloc, 0u, PG_MEMORY_PINNED, uint64_t{8}, &pinned);
  auto* value = reinterpret_cast<int64_t*>(pinned);
  *value = 5;
  plugin.upload(buffer, value, 8, s);
  plugin.sync(s);
  *value = 0;
  plugin.download(value, buffer, 8, s);
  plugin.sync(s);
  CHECK(*value == 5);
  plugin.ok(plugin.device->free, 0u, PG_MEMORY_PINNED, pinned);
}

TEST_CASE("A captured plan runs as often as it is launched, and an upload has no place in it") {
  Fresh fresh;
  Plugin plugin(CUDA_PLUGIN);
  const pg_device& device = *plugin.device;
  REQUIRE(PG_HAS(&device, pg_device, plan_destroy));
  uint64_t s = plugin.stream(), from = plugin.alloc(16), to = plugin.alloc(16), plan = 0;
  contract::Tensor four(PG_F32, {4});
  pg_tensor source = contract::describe(four, from), target = contract::describe(four, to);
  const pg_tensor *a = &source, *b = &target;
  float values[4] = {1, 2, 3, 4}, got[4] = {};
  plugin.upload(from, values, 16, s);
  plugin.sync(s);

  plugin.ok(device.capture_begin, 0u, s);
  plugin.ok(device.copy, 0u, b, a, s, ++plugin.sequence);
  const pg_number nine = pg::make_number(9.0);
  plugin.ok(device.fill, 0u, a, &nine, s, ++plugin.sequence);
  Code refused = plugin.call(device.upload, 0u, from, uint64_t{0}, static_cast<const void*>(values), uint64_t{16}, s,
                             ++plugin.sequence);
  CHECK((refused.code == PG_E_FAILED_PRECONDITION || refused.code == PG_E_NOT_SUPPORTED));
  CHECK(!refused.message().empty());
  plugin.ok(device.capture_end, 0u, s, &plan);
  REQUIRE(plan != 0);

  plugin.ok(device.plan_launch, 0u, plan, s, ++plugin.sequence);
  plugin.download(got, to, 16, s);
  plugin.sync(s);
  CHECK((got[0] == 1 && got[3] == 4));
  plugin.ok(device.plan_launch, 0u, plan, s, ++plugin.sequence);
  plugin.download(got, to, 16, s);
  plugin.sync(s);
  CHECK((got[0] == 9 && got[3] == 9));
  plugin.ok(device.plan_destroy, 0u, plan);
}
