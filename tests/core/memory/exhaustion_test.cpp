// SPDX-License-Identifier: Apache-2.0
// Host memory that ends in the middle of something: what was given out can be freed all the same, and nothing is lost.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include "device/fake_device.hpp"
#include "memory/state.hpp"
#include "tensor/kept.hpp"

namespace exhaustion {

constinit thread_local int64_t requests_left = -1;  // to operator new, until all fail; -1: any number

struct Exhausted {
  explicit Exhausted(int64_t after) { requests_left = after; }
  ~Exhausted() { requests_left = -1; }
};

}  // namespace exhaustion

// Not inline: compilers would take the C functions for a mismatch.
__attribute__((noinline)) void* operator new(size_t bytes) {
  int64_t& left = exhaustion::requests_left;
  void* memory = left == 0 ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  if (left > 0) left--;
  return memory;
}
// What is freed by the operators below comes from here too: a sanitizer has a pair of its own.
__attribute__((noinline)) void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes > 0 ? bytes : 1);
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { std::free(memory); }

using namespace perigee;
using namespace perigee::test;
using exhaustion::Exhausted;

namespace {
namespace exhausted_memory {  // files are compiled together

// A device whose memory is numbers. What other streams do has passed once the test says so.
struct Numbers final : MemorySource {
  const std::string& source_name() const override { return name; }
  uint64_t memory_total() const override { return 0; }
  bool map(uint64_t bytes, uint64_t& buffer, pg_error&) override {
    mapped++;
    buffer = last += bytes;
    return true;
  }
  void unmap(uint64_t) noexcept override { mapped--; }
  void drain() noexcept override {}
  uint64_t mark(uint32_t) override { return ++marks; }
  bool passed(uint64_t) override { return idle; }
  void wait(uint64_t) noexcept override {}
  void forget(uint64_t) noexcept override { forgotten++; }
  std::string name = "numbers";
  uint64_t last = 4096, marks = 0, forgotten = 0;
  int mapped = 0;
  bool idle = false;
};

constexpr uint64_t kSizes[] = {100, 40000, 0, 30000, 3 << 20, 100000, 200000, 30 << 20, 70, 5 << 20};

// Allocates and frees on two streams until memory ends or all is done. What is still held is in `held`.
bool work(CachingAllocator& memory, std::vector<Block*>& held) {
  bool whole = true;
  for (uint32_t round = 0; round < 3; round++) {
    for (uint64_t bytes : kSizes) {
      try {
        held.push_back(memory.alloc(bytes, round % 2));
      } catch (const std::bad_alloc&) {
        whole = false;
      }
    }
    for (size_t i = 0; i < held.size(); i += 2) {
      held[i]->used_on = i % 4 == 0 ? 2 : 0;
      memory.free(held[i]);
      held[i] = held.back();
      held.pop_back();
    }
    try {
      memory.empty_cache();
    } catch (const std::bad_alloc&) {
      whole = false;
    }
  }
  return whole;
}

}  // namespace exhausted_memory
}  // namespace

using namespace exhausted_memory;

TEST_CASE("a caching allocator loses nothing where host memory ends") {
  const bool synchronous = GENERATE(true, false), exact = GENERATE(false, true);
  if (exact) setenv("PERIGEE_MEMORY", "exact", 1);
  int runs = 0;
  for (bool whole = false; !whole; runs++) {
    Numbers source;
    CachingAllocator memory(source);
    memory.configure(64, synchronous);
    std::vector<Block*> held;
    held.reserve(100);
    {
      Exhausted soon(runs);
      whole = work(memory, held);
      for (Block* block : held) {
        block->used_on = 2;
        memory.free(block);
      }
    }
    source.idle = true;
    REQUIRE(memory.stats().live == 0);
    memory.free(memory.alloc(40 << 20, 0));
    memory.empty_cache();
    INFO("memory ended after " << runs << " requests");
    CHECK(memory.stats().reserved == 0);
    CHECK(source.mapped == 0);
    CHECK(source.forgotten == source.marks);
  }
  CHECK(runs > 20);
  unsetenv("PERIGEE_MEMORY");
}

TEST_CASE("what is kept is let go of without asking for memory") {
  FakeOptions options;
  options.synchronous = true;
  FakePlugin plugin(options);
  auto device = make_device(plugin);
  const int64_t shape[] = {1 << 20};
  TensorRef x = make_dense(*device, intern_meta(PG_F32, 1, shape));
  TensorRef beside[] = {make_dense(*device, x->meta), make_dense(*device, x->meta), make_dense(*device, x->meta)};
  {
    std::lock_guard guard(kept_mutex());
    kept_of(*x->storage).casts.push_back({PG_F32, x->meta, 0, std::move(beside[1])});
  }
  beside[0] = beside[2] = nullptr;
  const uint64_t before = device->allocator.stats().live;
  {
    Exhausted now(0);
    release_kept();
  }
  CHECK(device->allocator.stats().live == before - (4 << 20));
  {
    std::lock_guard guard(kept_mutex());
    Exhausted now(0);
    CHECK_THROWS_AS(kept_of(*make_dense(*device, intern_meta(PG_F32, 0, nullptr))->storage), std::bad_alloc);
  }
}

TEST_CASE("a tensor that has no room for its header holds no memory of the device") {
  FakeOptions options;
  options.synchronous = true;
  FakePlugin plugin(options);
  auto device = make_device(plugin);
  const int64_t shape[] = {1 << 20};
  MetaRef meta = intern_meta(PG_F32, 1, shape);
  make_dense(*device, meta);
  bool made = false;
  int64_t left = 0;
  for (; !made; left++) {
    std::thread([&] {  // one without headers to use again
      try {
        Exhausted soon(left);
        make_dense(*device, meta);
        made = true;
      } catch (const std::bad_alloc&) {
      }
    })
        .join();
    CHECK(device->allocator.stats().live == 0);
  }
  CHECK(left > 2);
}
