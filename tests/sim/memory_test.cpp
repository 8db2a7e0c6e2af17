// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <numeric>

#include "harness.hpp"

using namespace test;

TEST_CASE("The plugin describes itself") {
  CHECK(library().magic == PG_MAGIC);
  CHECK(std::string(library().name) == "sim");
  Sim sim({{"DEVICES", "3"}, {"MEMORY", "64MB"}});
  uint32_t count = 0;
  sim.ok(sim.device->count, &count);
  CHECK(count == 3);
  CHECK(std::string(sim.device->aliases).empty());
  pg_device_properties p{};
  p.size = PG_SIZE(pg_device_properties, reserved);
  sim.ok(sim.device->properties, 2u, &p);
  CHECK(p.memory_total == 64u << 20);
  CHECK(p.stream_count == 2);
  CHECK((p.flags & (PG_DEVICE_HOST_VISIBLE | PG_DEVICE_SYNCHRONOUS | PG_DEVICE_ACCELERATOR)) == 0);
  CHECK(sim.call(sim.device->properties, 3u, &p).code == PG_E_INVALID_ARGUMENT);
}

TEST_CASE("It answers to gpu when asked to") {
  Sim sim({{"GPU", "1"}});
  CHECK(std::string(sim.device->aliases) == "gpu");
}

TEST_CASE("Settings that make no sense are refused by name") {
  CHECK_THROWS_WITH(Sim({{"DEVICES", "9"}}), Catch::Contains("PERIGEE_SIM_DEVICES"));
  CHECK_THROWS_WITH(Sim({{"MEMORY", "64 apples"}}), Catch::Contains("64 apples"));
  CHECK_THROWS_WITH(Sim({{"FAIL", "allocs:2"}}), Catch::Contains("allocs"));
}

TEST_CASE("Handles are no addresses") {
  Sim sim;
  uint64_t buffer = sim.alloc(64);
  CHECK(buffer >> 48 != 0);
  CHECK(buffer >> 48 != 0xffff);  // not canonical: reading through it faults
}

TEST_CASE("Bytes go up, down and across devices") {
  Sim sim({{"DEVICES", "2"}});
  uint64_t s0 = sim.stream(0), s1 = sim.stream(1), a = sim.alloc(1000, 0), b = sim.alloc(2000, 1);
  std::vector<unsigned char> up(1000), down(1000);
  std::iota(up.begin(), up.end(), 7);
  sim.upload(a, up.data(), 1000, s0);
  sim.ok(sim.device->stream_sync, 0u, s0);
  sim.ok(sim.device->peer, 1u, b, uint64_t{500}, 0u, a, uint64_t{0}, uint64_t{1000}, s1, uint64_t{2});
  sim.ok(sim.device->download, 1u, static_cast<void*>(down.data()), b, uint64_t{500}, uint64_t{1000}, s1, uint64_t{3});
  sim.ok(sim.device->stream_sync, 1u, s1);
  CHECK(up == down);
}

TEST_CASE("Use after free, foreign handles and overruns are errors") {
  Sim sim({{"DEVICES", "2"}});
  uint64_t s = sim.stream(), buffer = 0;
  char byte = 0;
  auto read = [&](uint64_t handle, uint64_t offset, uint64_t bytes) {
    return sim.call(sim.device->download, 0u, static_cast<void*>(&byte), handle, offset, bytes, s, uint64_t{1});
  };
  sim.ok(sim.device->alloc, 0u, PG_MEMORY_DEVICE, uint64_t{100}, &buffer);
  CHECK(read(buffer, 100, 1).code == PG_E_INVALID_ARGUMENT);
  CHECK(read(buffer, UINT64_MAX, 1).code == PG_E_INVALID_ARGUMENT);
  CHECK(read(reinterpret_cast<uintptr_t>(&byte), 0, 1).code == PG_E_INVALID_ARGUMENT);
  CHECK_THAT(read(sim.alloc(8, 1), 0, 1).message(), Catch::Contains("sim:1"));
  sim.ok(sim.device->free, 0u, PG_MEMORY_DEVICE, buffer);
  Code freed = read(buffer, 0, 1);
  CHECK(freed.code == PG_E_FAILED_PRECONDITION);
  CHECK_THAT(freed.message(), Catch::Contains("has been freed"));
  CHECK(sim.call(sim.device->free, 0u, PG_MEMORY_DEVICE, buffer).code == PG_E_FAILED_PRECONDITION);
}

TEST_CASE("Freeing a buffer that work is pending on is an error") {
  Sim sim;
  uint64_t s = sim.stream(), buffer = sim.alloc(64);
  char bytes[64] = {};
  sim.occupy(s);
  sim.upload(buffer, bytes, 64, s);
  CHECK(sim.call(sim.device->free, 0u, PG_MEMORY_DEVICE, buffer).code == PG_E_FAILED_PRECONDITION);
  sim.ok(sim.device->stream_sync, 0u, s);
}

TEST_CASE("Pinned memory is host memory") {
  Sim sim;
  uint64_t address = 0;
  sim.ok(sim.device->alloc, 0u, PG_MEMORY_PINNED, uint64_t{16}, &address);
  std::memset(reinterpret_cast<void*>(address), 1, 16);
  sim.ok(sim.device->free, 0u, PG_MEMORY_PINNED, address);
  CHECK(sim.call(sim.device->free, 0u, PG_MEMORY_PINNED, address).code == PG_E_INVALID_ARGUMENT);
}

TEST_CASE("Close answers busy while a buffer lives") {
  Sim sim;
  uint64_t buffer = 0;
  sim.ok(sim.device->alloc, 0u, PG_MEMORY_DEVICE, uint64_t{16}, &buffer);
  pg_error error = pg::make_error();
  CHECK(library().close(sim.self, &error) == PG_E_BUSY);
  sim.ok(sim.device->free, 0u, PG_MEMORY_DEVICE, buffer);
}

TEST_CASE("Copy converts between dtypes and strides") {
  Sim sim;
  uint64_t s = sim.stream(), from = sim.alloc(6 * 4), to = sim.alloc(6 * 8), half = sim.alloc(6 * 2);
  float values[6] = {0, 1.75f, -2.75f, 3, -0.5f, 300};
  int64_t shape[2] = {3, 2}, turned[2] = {1, 3}, plain[2] = {2, 1};
  pg_tensor source = {PG_SIZE(pg_tensor, components), PG_FLOAT, 32, 2, 0, shape, turned, from, 0, 0, 0, 0, 0, nullptr};
  pg_tensor target = {PG_SIZE(pg_tensor, components), PG_INT, 64, 2, 0, shape, plain, to, 0, 0, 0, 0, 0, nullptr};
  pg_tensor middle = {PG_SIZE(pg_tensor, components), PG_BFLOAT, 16, 2, 0, shape, plain, half, 0, 0, 0, 0, 0, nullptr};
  sim.upload(from, values, sizeof values, s);
  sim.ok(sim.device->copy, 0u, &middle, &source, s, uint64_t{2});
  sim.ok(sim.device->copy, 0u, &target, &middle, s, uint64_t{3});
  int64_t got[6];
  sim.download(got, to, sizeof got, s);
  sim.ok(sim.device->stream_sync, 0u, s);
  int64_t expected[6] = {0, 3, 1, 0, -2, 300};
  CHECK(std::memcmp(got, expected, sizeof got) == 0);

  target.dtype_code = PG_BOOL, target.dtype_bits = 8;
  sim.ok(sim.device->copy, 0u, &target, &source, s, uint64_t{4});
  uint8_t truth[6];
  sim.download(truth, to, sizeof truth, s);
  sim.ok(sim.device->stream_sync, 0u, s);
  uint8_t expected_truth[6] = {0, 1, 1, 1, 1, 1};
  CHECK(std::memcmp(truth, expected_truth, sizeof truth) == 0);
}
