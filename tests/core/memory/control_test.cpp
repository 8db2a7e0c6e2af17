// SPDX-License-Identifier: Apache-2.0
// Growth, limits and statistics, and failures that a test asks for.
#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "device/fake_device.hpp"
#include "memory/state.hpp"

using namespace perigee;
using namespace perigee::test;
using Catch::Matchers::Contains;

namespace {
namespace memory_control {  // files are compiled together

constexpr uint64_t kMeg = 1024 * 1024;

struct Controlled {
  explicit Controlled(uint64_t bytes = 0, bool synchronous = false) {
    FakeOptions options;
    options.memory = bytes;
    options.synchronous = synchronous;
    plugin = std::make_unique<FakePlugin>(options);
    device = make_device(*plugin);
  }
  std::unique_ptr<FakePlugin> plugin;
  std::unique_ptr<Device> device;
  CachingAllocator& memory() { return device->allocator; }
  MemoryStats stats() { return memory().stats(); }
};

}  // namespace memory_control
}  // namespace

using namespace memory_control;

TEST_CASE("statistics are exact to the byte whatever is allocated and freed") {
  Controlled f(0, true);
  std::mt19937 random(7);
  std::vector<std::pair<Block*, uint64_t>> held;
  uint64_t requested = 0, live = 0, peak = 0, served = 0;
  for (int i = 0; i < 4000; i++) {
    if (held.empty() || random() % 5 < 3) {
      const uint64_t bytes = random() % 20 == 0 ? 0 : random() % (1ull << (random() % 24));
      Block* block = f.memory().alloc(bytes, 0);
      REQUIRE(block->bytes >= bytes);
      held.emplace_back(block, bytes);
      requested += bytes;
      live += block->bytes;
      peak = std::max(peak, live);
      served++;
    } else {
      const size_t at = random() % held.size();
      requested -= held[at].second;
      live -= held[at].first->bytes;
      f.memory().free(held[at].first);
      held[at] = held.back();
      held.pop_back();
    }
    if (i % 500 == 0) f.memory().empty_cache();
    const MemoryStats s = f.stats();
    REQUIRE(s.requested == requested);
    REQUIRE(s.live == live);
    REQUIRE(s.peak == peak);
    REQUIRE(s.allocations == served);
    REQUIRE(s.reserved == f.plugin->allocated);
    REQUIRE(s.device_allocations == static_cast<uint64_t>(f.plugin->allocations));
  }
  for (auto& [block, bytes] : held) f.memory().free(block);
  f.memory().empty_cache();
  CHECK(f.stats().requested == 0);
  CHECK(f.stats().live == 0);
  CHECK(f.stats().reserved == 0);
}

TEST_CASE("without growth all is taken at once, and nothing more") {
  Controlled f(256 * kMeg);
  f.memory().set_limit(64 * kMeg);
  f.memory().set_growth(false);
  CHECK(f.stats().reserved == 64 * kMeg);
  CHECK_FALSE(f.stats().grows);
  const int asked = f.plugin->allocations;
  std::vector<Block*> held;
  for (uint32_t stream : {0u, 1u})
    for (uint64_t bytes : {uint64_t{100}, 5 * kMeg, 12 * kMeg}) held.push_back(f.memory().alloc(bytes, stream));
  for (size_t i = 0; i < held.size(); i++)
    for (size_t k = 0; k < i; k++) {
      const Block &a = *held[i], &b = *held[k];
      REQUIRE((a.buffer + a.offset >= b.buffer + b.offset + b.bytes ||
               b.buffer + b.offset >= a.buffer + a.offset + a.bytes));
    }
  CHECK_THROWS_WITH(f.memory().alloc(40 * kMeg, 0), Contains("tried to allocate 40.0 MiB"));
  for (Block* block : held) f.memory().free(block);
  f.memory().free(f.memory().alloc(64 * kMeg, 1));  // what one stream had serves another, whole
  CHECK(f.plugin->allocations == asked);
  CHECK(f.stats().reserved == 64 * kMeg);
  f.memory().empty_cache();
  CHECK(f.stats().reserved == 64 * kMeg);
}

TEST_CASE("growth and limits change while memory is in use") {
  Controlled f(256 * kMeg);
  Block* early = f.memory().alloc(3 * kMeg, 0);  // before anything was said
  f.memory().set_limit(64 * kMeg);
  f.memory().set_growth(false);
  CHECK(f.stats().reserved == 64 * kMeg);
  Block* late = f.memory().alloc(30 * kMeg, 0);
  f.memory().set_limit(100 * kMeg);  // more is taken
  CHECK(f.stats().reserved == 100 * kMeg);
  f.memory().set_limit(40 * kMeg);  // what is in use stays, the rest goes
  CHECK(f.stats().reserved < 100 * kMeg);
  CHECK_THROWS_WITH(f.memory().alloc(20 * kMeg, 0), Contains("the limit set for this device is 40.0 MiB"));
  f.memory().free(late);
  Block* again = f.memory().alloc(20 * kMeg, 0);
  f.memory().free(again);
  f.memory().free(early);
  f.memory().set_growth(true);
  f.memory().empty_cache();
  CHECK(f.stats().reserved == 0);
  CHECK(f.plugin->allocated == 0);
  f.memory().set_limit(0);
  f.memory().set_growth(false);  // without a limit: what the device has free
  CHECK(f.stats().reserved == 256 * kMeg);
  f.memory().free(f.memory().alloc(200 * kMeg, 0));
}

TEST_CASE("without growth, a limit or a known amount of memory nothing can be taken") {
  Controlled f;
  CHECK_THROWS_WITH(f.memory().set_growth(false), Contains("set a limit first"));
  CHECK(f.stats().grows);
  f.memory().free(f.memory().alloc(100, 0));
  Controlled small(10 * kMeg);
  small.memory().set_limit(20 * kMeg);
  CHECK_THROWS_WITH(small.memory().set_growth(false), Contains("the fake is full"));
  CHECK(small.stats().reserved == 0);
}

TEST_CASE("the nth allocation fails on request, once or until further notice") {
  Controlled f;
  Block* block = f.memory().alloc(1000, 0, {"conv2d"});
  f.memory().fail_allocations(2, 1);
  f.memory().free(f.memory().alloc(100, 0));
  f.memory().free(f.memory().alloc(0, 0));  // no memory
  CHECK_THROWS_WITH(f.memory().alloc(100, 0), Contains("tried to allocate 100 B") && Contains("a test asked") &&
                                                  Contains("most is held by 1.0 KiB in 1 tensor of conv2d"));
  f.memory().free(f.memory().alloc(100, 0));
  f.memory().fail_allocations(1, UINT64_MAX);
  for (int i = 0; i < 3; i++) CHECK_THROWS_AS(f.memory().alloc(100 * kMeg, 0), pg::Error);
  f.memory().fail_allocations(0, 0);
  f.memory().free(f.memory().alloc(100 * kMeg, 0));
  f.memory().free(block);
  CHECK(f.stats().live == 0);
}
