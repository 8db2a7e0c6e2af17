// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>

#include "device/fake_device.hpp"

using namespace perigee;
using namespace perigee::test;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

namespace {

std::vector<uint8_t> pattern(size_t bytes, uint8_t seed = 1) {
  std::vector<uint8_t> data(bytes);
  for (size_t i = 0; i < bytes; i++) data[i] = static_cast<uint8_t>(i * 31 + i / 251 + seed);
  return data;
}

pg_address at(const Block* block) { return {block->buffer, block->offset}; }

}  // namespace

TEST_CASE("an upload owns a copy of its source when it returns") {
  FakePlugin plugin({});
  auto device = make_device(plugin);
  const size_t bytes = GENERATE(size_t{1}, size_t{5000}, size_t{11} << 20);
  Block* block = device->allocator.alloc(bytes, 0);
  auto source = pattern(bytes);
  const auto expected = source;
  device->upload(at(block), source.data(), bytes, 0);
  std::fill(source.begin(), source.end(), uint8_t{0});  // before the device has read anything
  std::vector<uint8_t> back(bytes);
  device->download(back.data(), at(block), bytes, 0);
  CHECK(back == expected);
}

TEST_CASE("staging memory is reused once its upload has happened, and bounded") {
  FakePlugin plugin({});
  auto device = make_device(plugin);
  const size_t bytes = 4 << 20;
  Block* block = device->allocator.alloc(bytes, 0);
  const auto source = pattern(bytes);
  for (int i = 0; i < 100; i++) device->upload(at(block), source.data(), bytes, 0);
  CHECK(plugin.pinned.size() <= 17);
  device->synchronize();
  const size_t before = plugin.pinned.size();
  for (int i = 0; i < 10; i++) {
    device->upload(at(block), source.data(), bytes, 0);
    plugin.run(0);
  }
  CHECK(plugin.pinned.size() == before);
}

TEST_CASE("a synchronous, host-visible device copies without its plugin") {
  FakeOptions options;
  options.synchronous = true;
  FakePlugin plugin(options);
  auto device = make_device(plugin);
  Block* block = device->allocator.alloc(1000, 0);
  const auto source = pattern(1000);
  device->upload(at(block), source.data(), 1000, 0);
  CHECK(std::memcmp(reinterpret_cast<void*>(block->buffer + block->offset), source.data(), 1000) == 0);
  CHECK_FALSE(device->record(0));
  CHECK(device->sequence("add") == 0);
}

TEST_CASE("streams are made when first used") {
  FakePlugin plugin({});
  auto device = make_device(plugin);
  const uint64_t first = device->stream(3);
  CHECK(device->stream(3) == first);
  CHECK(device->stream(31) != first);
  CHECK_THROWS_WITH(device->stream(32), Contains("stream 32 is out of range on fake:0"));
}

TEST_CASE("events come from a pool and order streams") {
  FakePlugin plugin({});
  auto device = make_device(plugin);
  device->stream(0);
  device->stream(1);
  {
    Event event = device->record(0);
    CHECK_FALSE(event.passed());
    device->wait(1, event);
    plugin.run(1);  // runs stream 0 up to the event first
    CHECK(event.passed());
  }
  for (int i = 0; i < 10; i++) device->record(0).wait();
  CHECK(plugin.live_events == 1);
}

TEST_CASE("an asynchronous failure names the operator that caused it") {
  FakePlugin plugin({});
  auto device = make_device(plugin);
  device->stream(0);
  device->stream(1);
  for (int i = 0; i < 122; i++) device->sequence("mul");
  const uint64_t number = device->sequence("add");
  device->sequence("mul");
  plugin.submit_failure(0, number, "index 7 is out of range");
  CHECK_NOTHROW(device->synchronize(1));
  CHECK_THROWS_WITH(device->synchronize(0), Equals("add (number 123): index 7 is out of range"));
  CHECK_NOTHROW(device->synchronize(0));

  plugin.submit_failure(0, number, "late");
  for (int i = 0; i < 5000; i++) device->sequence("mul");
  CHECK_THROWS_WITH(device->synchronize(), Equals("operator number 123: late"));
}

TEST_CASE("a failure that a drain came upon is raised by the next synchronisation") {
  FakePlugin plugin({});
  auto device = make_device(plugin);
  device->stream(0);
  plugin.submit_failure(0, device->sequence("add"), "broken");
  device->drain();
  CHECK_THROWS_WITH(device->synchronize(), Contains("add (number 1): broken"));
  CHECK_NOTHROW(device->synchronize());
}

TEST_CASE("a download raises the failure of the work before it") {
  FakePlugin plugin({});
  auto device = make_device(plugin);
  Block* block = device->allocator.alloc(64, 0);
  device->stream(0);
  plugin.submit_failure(0, device->sequence("log"), "poisoned");
  char data[64];
  CHECK_THROWS_WITH(device->download(data, at(block), 64, 0), Contains("log (number 1): poisoned"));
}

TEST_CASE("a lost device fails at once, another goes on") {
  FakePlugin plugin({});
  auto lost = make_device(plugin, 0), good = make_device(plugin, 1);
  lost->stream(0);
  good->stream(0);
  plugin.submit_failure(0, lost->sequence("matmul"), "fell off the bus", PG_ERROR_DEVICE_LOST);
  CHECK_THROWS_WITH(lost->synchronize(), Contains("matmul (number 1): fell off the bus"));
  CHECK(lost->lost());
  for (int i = 0; i < 2; i++) {
    CHECK_THROWS_WITH(lost->stream(0), Equals("fake:0 is lost: matmul (number 1): fell off the bus"));
    CHECK_THROWS_WITH(lost->synchronize(), Contains("fake:0 is lost"));
  }
  Block* block = good->allocator.alloc(100, 0);
  const auto source = pattern(100);
  std::vector<uint8_t> back(100);
  good->upload(at(block), source.data(), 100, 0);
  good->download(back.data(), at(block), 100, 0);
  CHECK(back == source);
}

TEST_CASE("bytes go from device to device, by peer or through the host") {
  FakeOptions options;
  options.peer = GENERATE(false, true);
  FakePlugin plugin(options), stranger({});
  auto a = make_device(plugin, 0), b = make_device(plugin, 1), c = make_device(stranger, 0);
  const size_t bytes = GENERATE(size_t{100}, size_t{9} << 20);
  const auto source = pattern(bytes);
  Block *from = a->allocator.alloc(bytes, 0), *to = b->allocator.alloc(bytes, 0), *far = c->allocator.alloc(bytes, 0);
  a->upload(at(from), source.data(), bytes, 0);
  b->copy_from(at(to), 1, *a, at(from), 0, bytes);
  c->copy_from(at(far), 0, *b, at(to), 1, bytes);
  std::vector<uint8_t> back(bytes);
  c->download(back.data(), at(far), bytes, 0);
  CHECK(back == source);
  CHECK(plugin.peer_copies == (options.peer ? 1 : 0));
}

TEST_CASE("a copy between devices of one plugin keeps the host waiting for neither") {
  FakeOptions options;
  options.peer = true;
  FakePlugin plugin(options);
  auto a = make_device(plugin, 0), b = make_device(plugin, 1);
  const auto source = pattern(100);
  Block *from = a->allocator.alloc(100, 0), *to = b->allocator.alloc(100, 0);
  a->upload(at(from), source.data(), 100, 0);
  b->copy_from(at(to), 0, *a, at(from), 0, 100);
  CHECK(plugin.pending(0) == 4);  // upload and its event, the event for the copy, and the wait for the copy
  CHECK(plugin.pending(1) == 3);  // the wait for the upload, copy, event
  std::vector<uint8_t> back(100);
  b->download(back.data(), at(to), 100, 0);
  CHECK(back == source);
}

TEST_CASE("closing gives everything back") {
  FakePlugin plugin({});
  {
    auto device = make_device(plugin);
    Block* block = device->allocator.alloc(5000, 0);
    const auto source = pattern(5000);
    device->upload(at(block), source.data(), 5000, 2);
    device->release(device->pinned(100));
    Event outlives = device->record(1);
    device->close();
    CHECK_THROWS_WITH(device->stream(0), Contains("has been shut down"));
  }
  CHECK(plugin.buffers.empty());
  CHECK(plugin.pinned.empty());
}
