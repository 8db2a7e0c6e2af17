// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <random>
#include <thread>

#include "base/ambient.hpp"
#include "device/fake_device.hpp"
#include "memory/state.hpp"

using namespace perigee;
using namespace perigee::test;
using Catch::Matchers::Contains;

namespace {

constexpr uint64_t kMiB = 1024 * 1024;

struct Fixture {
  explicit Fixture(FakeOptions options = {}) : plugin(options), device(make_device(plugin)) {}
  FakePlugin plugin;
  std::unique_ptr<Device> device;
  CachingAllocator& memory() { return device->allocator; }
};

FakeOptions synchronous() {
  FakeOptions options;
  options.synchronous = true;
  return options;
}

uint64_t address(const Block* block) { return block->buffer + block->offset; }

}  // namespace

TEST_CASE("size classes cover every small size") {
  for (uint64_t units = 1; units <= kSmallUnits; units++) {
    const uint32_t index = class_of(units);
    REQUIRE(index < kSmallClasses);
    REQUIRE(class_units(index) >= units);
    if (index > 0) REQUIRE(class_units(index - 1) < units);
  }
}

TEST_CASE("a freed block is the next one of its size") {
  Fixture f(synchronous());
  for (uint64_t bytes : std::vector<uint64_t>{1, 64, 1000, 30000, 100000, 5 * kMiB, 50 * kMiB}) {
    Block* block = f.memory().alloc(bytes, 0);
    CHECK(block->bytes >= bytes);
    CHECK(address(block) % 64 == 0);
    const uint64_t first = address(block);
    f.memory().free(block);
    Block* again = f.memory().alloc(bytes, 0);
    CHECK(address(again) == first);
    f.memory().free(again);
  }
  CHECK(f.memory().stats().live == 0);
}

TEST_CASE("blocks respect the device's alignment") {
  FakeOptions options = synchronous();
  options.alignment = 512;
  Fixture f(options);
  for (uint64_t bytes : std::vector<uint64_t>{1, 600, 40000, 3 * kMiB})
    CHECK(f.memory().alloc(bytes, 0)->offset % 512 == 0);
}

TEST_CASE("no bytes make a valid block without memory") {
  Fixture f;
  Block* block = f.memory().alloc(0, 1);
  REQUIRE(block != nullptr);
  CHECK(block->buffer == 0);
  CHECK(block->bytes == 0);
  block->used_on = 3;
  f.memory().free(block);
  CHECK(f.memory().alloc(0, 0) == block);
  CHECK(f.plugin.allocations == 0);
}

TEST_CASE("live, peak and reserved bytes are counted") {
  Fixture f(synchronous());
  const uint64_t before = live_bytes();
  Block* a = f.memory().alloc(kMiB, 0);
  Block* b = f.memory().alloc(2 * kMiB, 0);
  CHECK(f.memory().stats().live == 3 * kMiB);
  CHECK(live_bytes() - before == 3 * kMiB);
  f.memory().free(a);
  Block* c = f.memory().alloc(100, 0);
  MemoryStats stats = f.memory().stats();
  CHECK(stats.live == 2 * kMiB + c->bytes);
  CHECK(stats.peak == 3 * kMiB);
  CHECK(stats.allocations == 3);
  CHECK(stats.reserved == f.plugin.allocated);
  CHECK(stats.device_allocations == static_cast<uint64_t>(f.plugin.allocations));
  f.memory().free(b);
  f.memory().free(c);
  f.memory().empty_cache();
  CHECK(f.memory().stats().reserved == 0);
  CHECK(f.plugin.allocated == 0);
}

TEST_CASE("a hundred thousand dropped tensors need one segment") {
  Fixture f(synchronous());
  for (int i = 0; i < 100000; i++) f.memory().free(f.memory().alloc(kMiB, 0));
  CHECK(f.plugin.allocations == 1);
}

TEST_CASE("chunks split and merge back") {
  Fixture f(synchronous());
  std::vector<Block*> blocks;
  for (int i = 0; i < 10; i++) blocks.push_back(f.memory().alloc(2 * kMiB, 0));
  CHECK(f.plugin.allocations == 1);
  for (int i : {1, 3, 2, 9, 0, 8, 4, 7, 5, 6}) f.memory().free(blocks[static_cast<size_t>(i)]);
  for (int i = 0; i < 2; i++) blocks[static_cast<size_t>(i)] = f.memory().alloc(10 * kMiB, 0);
  CHECK(f.plugin.allocations == 1);
}

TEST_CASE("blocks never overlap") {
  Fixture f(synchronous());
  std::mt19937_64 random(7);
  std::map<uint64_t, Block*> live;
  for (int i = 0; i < 20000; i++) {
    if (!live.empty() && random() % 5 < 2) {
      auto it = live.lower_bound(random());
      if (it == live.end()) it = live.begin();
      f.memory().free(it->second);
      live.erase(it);
      continue;
    }
    const uint64_t bytes = 1 + random() % (1ull << (6 + random() % 16));
    Block* block = f.memory().alloc(bytes, 0);
    auto after = live.lower_bound(address(block));
    if (after != live.end()) REQUIRE(address(block) + block->bytes <= after->first);
    if (after != live.begin()) {
      auto before = std::prev(after);
      REQUIRE(before->first + before->second->bytes <= address(block));
    }
    live[address(block)] = block;
  }
  for (auto& [at, block] : live) f.memory().free(block);
  CHECK(f.memory().stats().live == 0);
  f.memory().empty_cache();
  CHECK(f.plugin.allocated == 0);
}

TEST_CASE("memory that another stream used comes back when that stream has passed") {
  Fixture f;
  f.device->stream(0);
  f.device->stream(1);
  const uint64_t bytes = GENERATE(uint64_t{256}, 4 * kMiB);
  Block* block = f.memory().alloc(bytes, 0);
  const uint64_t first = address(block);
  block->used_on = 1u << 1;
  f.memory().free(block);
  CHECK(f.memory().stats().live == 0);
  std::vector<Block*> others;
  for (int i = 0; i < 4; i++) others.push_back(f.memory().alloc(bytes, 0));
  for (Block* other : others) CHECK(address(other) != first);
  f.plugin.run(1);
  Block* again = f.memory().alloc(bytes, 0);
  CHECK(address(again) == first);
  f.memory().free(again);
  for (Block* other : others) f.memory().free(other);
}

TEST_CASE("memory used on its home stream alone comes back at once") {
  Fixture f;
  Block* block = f.memory().alloc(256, 1);
  block->used_on = 1u << 1;
  f.memory().free(block);
  CHECK(f.memory().alloc(256, 1) == block);
  CHECK(f.memory().alloc(256, 0) != block);
}

TEST_CASE("a synchronous device reuses memory across streams") {
  Fixture f(synchronous());
  Block* block = f.memory().alloc(256, 3);
  block->used_on = 0xff;
  f.memory().free(block);
  CHECK(f.memory().alloc(256, 5) == block);
}

TEST_CASE("what holds most is named, by use, when memory runs out") {
  FakeOptions options = synchronous();
  options.memory = 16 * kMiB;
  Fixture f(options);
  const MemoryUse conv{"conv2d", "Net.0 (Conv2d)", nullptr}, add{"add", nullptr, nullptr},
      traced{"add", "Net.1 (Sum)", "net.lua:3 in Net.1 (Sum)"};
  std::vector<Block*> held;
  for (int i = 0; i < 2; i++) held.push_back(f.memory().alloc(2 * kMiB, 0, conv));
  for (int i = 0; i < 64; i++) held.push_back(f.memory().alloc(16384, 0, add));
  held.push_back(f.memory().alloc(kMiB / 2, 0, traced));
  held.push_back(f.memory().alloc(1024, 0));
  f.memory().free(f.memory().alloc(4 * kMiB, 0, add));  // holds nothing any more
  CHECK_THROWS_WITH(f.memory().alloc(64 * kMiB, 0),
                    Contains("most is held by 4.0 MiB in 2 tensors of conv2d (Net.0 (Conv2d)), 1.0 MiB in 64 tensors "
                             "of add, 512.0 KiB in 1 tensor of add (net.lua:3 in Net.1 (Sum))"));
  for (Block* block : held) f.memory().free(block);
  CHECK_THROWS_WITH(f.memory().alloc(64 * kMiB, 0), !Contains("most is held"));
}

TEST_CASE("a limit below what is cached gives that back; the peak can begin anew") {
  Fixture f(synchronous());
  Block* kept = f.memory().alloc(5 * kMiB, 0);
  Block* freed = f.memory().alloc(40 * kMiB, 0);
  f.memory().free(freed);
  CHECK(f.memory().stats().reserved >= 45 * kMiB);
  f.memory().set_limit(30 * kMiB);
  CHECK(f.memory().stats().reserved <= 30 * kMiB);
  CHECK(f.memory().stats().peak >= 45 * kMiB);
  f.memory().reset_peak();
  CHECK(f.memory().stats().peak == f.memory().stats().live);
  f.memory().free(kept);
}

TEST_CASE("exhaustion waits for other streams and empties the cache before it fails") {
  FakeOptions options;
  options.memory = 8 * kMiB;
  Fixture f(options);
  f.device->stream(0);
  f.device->stream(1);
  Block* block = f.memory().alloc(5 * kMiB, 0);
  SECTION("the deferred block serves") {
    block->used_on = 2;
    f.memory().free(block);
    CHECK(f.memory().alloc(5 * kMiB, 0) != nullptr);
    CHECK(f.plugin.pending(1) == 0);
  }
  SECTION("another stream's cache is given back") {
    f.memory().free(block);
    CHECK(f.memory().alloc(6 * kMiB, 1) != nullptr);
    CHECK(f.plugin.allocated <= 8 * kMiB);
  }
  SECTION("slabs of small blocks are given back") {
    f.memory().free(block);
    f.memory().empty_cache();
    std::vector<Block*> small;
    for (int i = 0; i < 5000; i++) small.push_back(f.memory().alloc(1024, 0));
    for (Block* each : small) f.memory().free(each);
    CHECK(f.memory().alloc(7 * kMiB, 0) != nullptr);
  }
  SECTION("what is live stays, and the error has the numbers") {
    CHECK_THROWS_WITH(
        f.memory().alloc(1536 * kMiB, 0),
        Contains("tried to allocate 1.5 GiB on fake:0; 5.0 MiB of 8.0 MiB are live") && Contains("the fake is full"));
    try {
      f.memory().alloc(4 * kMiB, 0);
      FAIL("no error");
    } catch (const pg::Error& error) {
      CHECK(error.code == PG_E_OUT_OF_MEMORY);
    }
    CHECK(f.memory().stats().live == 5 * kMiB);
    f.memory().free(block);
    CHECK(f.memory().alloc(7 * kMiB, 0) != nullptr);
  }
}

TEST_CASE("one failed allocation of the device is survived") {
  Fixture f;
  f.plugin.fail_allocation = 1;
  Block* block = f.memory().alloc(3 * kMiB, 0);
  CHECK(block->bytes >= 3 * kMiB);
  CHECK(f.memory().stats().reserved == f.plugin.allocated);
}

TEST_CASE("a device that gives no handle fails by name") {
  FakeOptions options;
  options.no_handles = true;
  Fixture f(options);
  CHECK_THROWS_WITH(f.memory().alloc(64, 0), "fake:0: alloc: the plugin gave the handle 0");
  CHECK_THROWS_WITH(f.device->pinned(64), "fake:0: alloc of pinned memory: the plugin gave the handle 0");
}

TEST_CASE("sizes that cannot be are out of memory, not a crash") {
  Fixture f;
  for (uint64_t bytes : std::vector<uint64_t>{UINT64_MAX, UINT64_MAX - 63, uint64_t{1} << 63}) {
    CHECK_THROWS_WITH(f.memory().alloc(bytes, 0), Contains("tried to allocate"));
  }
}

TEST_CASE("a limit holds reserved memory down") {
  Fixture f(synchronous());
  f.memory().set_limit(4 * kMiB);
  Block* block = f.memory().alloc(3 * kMiB, 0);
  CHECK(f.memory().stats().reserved <= 4 * kMiB);
  CHECK_THROWS_WITH(f.memory().alloc(2 * kMiB, 0),
                    Contains("3.0 MiB of 4.0 MiB are live") && Contains("the limit set"));
  CHECK(f.memory().alloc(1000, 0) != nullptr);
  f.memory().free(block);
  f.memory().set_limit(0);
  CHECK(f.memory().alloc(100 * kMiB, 0) != nullptr);
}

TEST_CASE("a limit below what is reserved holds what is live down") {
  Fixture f(synchronous());
  Block *kept = f.memory().alloc(3 * kMiB, 0), *block = f.memory().alloc(8 * kMiB, 0);
  f.memory().free(block);
  f.memory().set_limit(4 * kMiB);
  CHECK_THROWS_WITH(f.memory().alloc(2 * kMiB, 0), Contains("3.0 MiB of 4.0 MiB are live"));
  block = f.memory().alloc(512 * 1024, 0);
  f.memory().free(block);
  f.memory().free(kept);
  CHECK(f.memory().alloc(3 * kMiB, 0) != nullptr);
}

TEST_CASE("threads share an allocator") {
  Fixture f(synchronous());
  auto work = [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<Block*> mine;
    for (int i = 0; i < 20000; i++) {
      if (mine.size() > 50) {
        std::swap(mine[random() % mine.size()], mine.back());
        f.memory().free(mine.back());
        mine.pop_back();
      }
      const uint64_t bytes = random() % 50 == 0 ? 100000 : 1 + random() % 3000;
      Block* block = f.memory().alloc(bytes, 0);
      *reinterpret_cast<uint64_t*>(address(block)) = seed;
      mine.push_back(block);
    }
    bool intact = true;
    for (Block* block : mine) {
      intact = intact && *reinterpret_cast<uint64_t*>(address(block)) == seed;
      f.memory().free(block);
    }
    return intact;
  };
  bool good[3] = {};
  std::thread a([&] { good[0] = work(1); }), b([&] { good[1] = work(2); });
  good[2] = work(3);
  a.join();
  b.join();
  CHECK((good[0] && good[1] && good[2]));
  CHECK(f.memory().stats().live == 0);
}

TEST_CASE("a block may be freed after its device has been closed") {
  Fixture f;
  Block* small = f.memory().alloc(100, 0);
  Block* large = f.memory().alloc(3 * kMiB, 0);
  f.device->close();
  CHECK(f.plugin.buffers.empty());
  f.memory().free(small);
  f.memory().free(large);
  CHECK_THROWS_WITH(f.memory().alloc(3 * kMiB, 0), Contains("has been shut down"));
}

TEST_CASE("exact memory is neither cached nor rounded up nor shared") {
  setenv("PERIGEE_MEMORY", "exact", 1);
  Fixture f;
  unsetenv("PERIGEE_MEMORY");
  Block *a = f.memory().alloc(12, 0), *b = f.memory().alloc(100001, 0), *none = f.memory().alloc(0, 0);
  CHECK(a->bytes == 12);
  CHECK(b->bytes == 100001);
  CHECK(a->buffer != b->buffer);
  CHECK(a->offset + b->offset == 0);
  CHECK(f.memory().stats().reserved == 100013);
  f.memory().free(a);
  CHECK(f.memory().stats().reserved == 100001);
  b->used_on = 1u << 3;
  f.memory().free(b);
  Block* c = f.memory().alloc(7, 0);  // of all that went, nothing is kept
  f.memory().empty_cache();
  CHECK(f.memory().stats().live == 7);
  CHECK(c->bytes == 7);
  f.memory().free(c);
  f.memory().free(none);
  f.memory().empty_cache();
  CHECK(f.memory().stats().reserved == 0);
}

TEST_CASE("what a pipeline's thread takes is the script's when it is handed over") {
  Fixture f(synchronous());
  const uint64_t before = own_bytes(), live = live_bytes();
  Block* mine = f.memory().alloc(kMiB, 0);
  CHECK(own_bytes() == before + kMiB);
  std::vector<Block*> ahead;
  uint64_t taken = 0;
  std::thread([&] {
    const Scoped counted(ambient().taken, &taken);
    for (int i = 0; i < 3; i++) ahead.push_back(f.memory().alloc(2 * kMiB, 0));
    f.memory().free(ahead.back());
    ahead.pop_back();
    CHECK(own_bytes() == 6 * kMiB);  // there, what was given back counts too
  }).join();
  CHECK(taken == 6 * kMiB);
  CHECK(own_bytes() == before + kMiB);
  CHECK(live_bytes() == live + 5 * kMiB);
  f.memory().hand_over(ahead[0]);
  f.memory().hand_over(ahead[0]);
  f.memory().hand_over(mine);
  CHECK(own_bytes() == before + 3 * kMiB);
  f.memory().free(ahead[0]);
  CHECK(own_bytes() == before + kMiB);
  f.memory().free(ahead[1]);
  f.memory().free(mine);
  CHECK(own_bytes() == before);
  Block* again = f.memory().alloc(2 * kMiB, 0);  // a block that was taken ahead before
  CHECK(own_bytes() == before + 2 * kMiB);
  f.memory().free(again);
}
