// SPDX-License-Identifier: Apache-2.0
#include "memory/memory.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/log.hpp"
#include "memory/state.hpp"

namespace perigee {

namespace {

// The counters of all allocators, for own_bytes, which is asked after every operator: read without a lock. Slots are
// never taken away, only emptied.
struct AllCounters {
  static constexpr size_t most = 256;
  std::array<std::atomic<const MemoryCounters*>, most> slots{};
  std::atomic<size_t> count{0};
};
constinit AllCounters all_counters;

template <class Read>
uint64_t sum_of(Read&& read) {
  const AllCounters& all = all_counters;
  uint64_t sum = 0;
  const size_t count = std::min(all.count.load(std::memory_order_acquire), AllCounters::most);
  for (size_t i = 0; i < count; i++)
    if (const auto* counters = all.slots[i].load(std::memory_order_acquire); counters != nullptr)
      sum += read(*counters);
  return sum;
}

}  // namespace

uint64_t live_bytes() {
  return sum_of([](const MemoryCounters& c) { return c.live.load(std::memory_order_relaxed); });
}

uint64_t own_bytes() {
  if (const uint64_t* taken = ambient().taken; taken != nullptr) return *taken;
  return sum_of([](const MemoryCounters& c) {
    const uint64_t ahead = c.ahead.load(std::memory_order_relaxed), live = c.live.load(std::memory_order_relaxed);
    return live > ahead ? live - ahead : 0;  // threads change both, one after the other
  });
}

std::string bytes_text(uint64_t bytes) {
  static const char* const kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return pg::format("%llu B", static_cast<unsigned long long>(bytes));
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); unit++) value /= 1024;
  return pg::format("%.1f %s", value, kUnits[unit]);
}

bool exact_memory() {
  const char* wanted = std::getenv("PERIGEE_MEMORY");
  return wanted != nullptr && std::strcmp(wanted, "exact") == 0;
}

CachingAllocator::CachingAllocator(MemorySource& source) : state_(new State(source)) {
  size_t slot = all_counters.count.fetch_add(1);
  if (slot < AllCounters::most) all_counters.slots[slot].store(state_, std::memory_order_release);
}

// Closing keeps the headers of blocks, which scripts may still hold at exit; only destruction ends them.
CachingAllocator::~CachingAllocator() {
  close();
  for (auto& slot : all_counters.slots)
    if (slot.load() == state_) slot.store(nullptr);
  delete state_;
}

void CachingAllocator::configure(uint64_t alignment, bool synchronous) {
  uint64_t unit = 64;
  while (unit < alignment) unit *= 2;
  state_->unit = unit;
  state_->unit_shift = static_cast<uint32_t>(__builtin_ctzll(unit));
  state_->synchronous = synchronous;
}

StreamPool& CachingAllocator::State::pool(uint32_t home) {
  StreamPool* pool = pools[home].load(std::memory_order_acquire);
  if (pool != nullptr) return *pool;
  auto* fresh = new StreamPool;
  if (pools[home].compare_exchange_strong(pool, fresh)) return *fresh;
  delete fresh;
  return *pool;
}

Block* CachingAllocator::alloc(uint64_t bytes, uint32_t stream, const MemoryUse& use) {
  State& s = *state_;
  if (s.deferred_count.load(std::memory_order_relaxed) != 0) {
    std::lock_guard guard(s.mutex);
    s.poll_deferred(false);
  }
  // Nothing is in flight on a synchronous device, so all its streams share one pool.
  uint32_t home = s.synchronous ? 0 : stream;
  if (home >= kMaxStreams)
    pg::fail_argument(pg::format("stream %u is out of range; there are %u", stream, kMaxStreams));
  if (bytes == 0) return s.alloc_empty(use);
  if (s.failing.load(std::memory_order_relaxed)) [[unlikely]]
    s.count_to_failure(bytes);
  if (bytes > (UINT64_MAX >> 1)) {
    std::lock_guard guard(s.mutex);
    s.fail_exhausted(bytes, pg::make_error());
  }
  if (s.exact) return s.alloc_large(bytes, home, bytes, use);
  uint64_t units = (bytes + s.unit - 1) >> s.unit_shift;
  if (units <= kSmallUnits) return s.alloc_small(class_of(units), home, bytes, use);
  return s.alloc_large(units << s.unit_shift, home, bytes, use);
}

Block* CachingAllocator::State::alloc_small(uint32_t size_class, uint32_t home, uint64_t asked, const MemoryUse& use) {
  Block*& list = pool(home).small[size_class];
  for (;;) {
    {
      std::lock_guard guard(spin);
      if (Block* block = list; block != nullptr) {
        list = block->next;
        account_alloc(*block, asked, use);
        return block;
      }
    }
    std::lock_guard guard(mutex);
    refill(size_class, home);
  }
}

// Cuts a chunk into blocks of one class.
void CachingAllocator::State::refill(uint32_t size_class, uint32_t home) {
  const uint64_t bytes = static_cast<uint64_t>(class_units(size_class)) << unit_shift;
  const uint64_t slab = std::max<uint64_t>(64 * 1024, bytes * 8);
  Chunk* chunk;
  try {
    chunk = take_chunk(slab, home);
  } catch (const pg::Error& error) {
    if (error.code != PG_E_OUT_OF_MEMORY) throw;
    chunk = take_chunk(bytes, home);
  }
  const auto count = static_cast<uint32_t>(chunk->block.bytes / bytes);
  try {
    chunk->small = std::make_unique<Block[]>(count);
  } catch (const std::bad_alloc&) {
    return_chunk(chunk);
    throw;
  }
  chunk->small_count = count;
  for (uint32_t i = 0; i < count; i++) {
    Block& block = chunk->small[i];
    block.buffer = chunk->segment->buffer;
    block.offset = chunk->block.offset + i * bytes;
    block.bytes = bytes;
    block.home = home;
    block.size_class = size_class;
    block.segment = chunk;
    block.next = i + 1 < count ? &chunk->small[i + 1] : nullptr;
  }
  Block*& list = pool(home).small[size_class];
  std::lock_guard guard(spin);
  chunk->small[count - 1].next = list;
  list = &chunk->small[0];
}

Block* CachingAllocator::State::alloc_empty(const MemoryUse& use) {
  {
    std::lock_guard guard(spin);
    if (Block* block = empty_blocks; block != nullptr) {
      empty_blocks = block->next;
      account_alloc(*block, 0, use);
      return block;
    }
  }
  auto block = std::make_unique<Block>();
  block->size_class = kEmptyClass;
  std::lock_guard guard(mutex);
  empties.push_back(std::move(block));
  std::lock_guard spinning(spin);
  account_alloc(*empties.back(), 0, use);
  return empties.back().get();
}

Block* CachingAllocator::State::alloc_large(uint64_t bytes, uint32_t home, uint64_t asked, const MemoryUse& use) {
  std::lock_guard guard(mutex);
  Chunk* chunk = take_chunk(bytes, home);
  std::lock_guard spinning(spin);
  account_alloc(chunk->block, asked, use);
  return &chunk->block;
}

void CachingAllocator::free(Block* block) noexcept {
  State& s = *state_;
  if (s.closed.load(std::memory_order_acquire)) return;  // its memory went with the device
  const uint32_t others = s.synchronous ? 0 : block->used_on & ~(1u << block->home);
  block->used_on = 0;
  if (others == 0 && block->size_class < kSmallClasses) {
    Block*& list = s.pools[block->home].load(std::memory_order_relaxed)->small[block->size_class];
    std::lock_guard guard(s.spin);
    s.account_free(*block);
    block->next = list;
    list = block;
    return;
  }
  {
    std::lock_guard guard(s.spin);
    s.account_free(*block);
  }
  if (others != 0 && block->size_class != kEmptyClass) {
    block->used_on = others;
    s.defer(block);
  } else {
    s.give_back(block);
  }
}

void CachingAllocator::hand_over(Block* block) noexcept {
  std::lock_guard guard(state_->spin);
  if (block->given) state_->end_ahead(*block);
}

void CachingAllocator::State::give_back(Block* block) {
  if (block->size_class == kLargeClass) {
    std::lock_guard guard(mutex);
    return_chunk(static_cast<Chunk*>(block->segment));
    return;
  }
  std::lock_guard guard(spin);
  Block*& list = block->size_class == kEmptyClass ? empty_blocks : pool(block->home).small[block->size_class];
  block->next = list;
  list = block;
}

void CachingAllocator::State::defer(Block* block) {
  const uint32_t others = block->used_on;
  block->used_on = 0;
  try {
    std::list<Deferred> entry(1);
    entry.front().block = block;
    for (uint32_t stream = 0; stream < kMaxStreams; stream++)
      if ((others >> stream & 1) != 0) entry.front().marks.emplace_back(source, stream);
    std::lock_guard guard(mutex);
    deferred.splice(deferred.end(), entry);
    deferred_count.store(static_cast<uint32_t>(deferred.size()), std::memory_order_relaxed);
  } catch (const std::exception&) {
    // Without events the end of all streams is the next best proof; on a lost device nothing runs any more.
    source.drain();
    give_back(block);
  }
}

void CachingAllocator::State::poll_deferred(bool wait) {
  // A few at a time, in turn, so that a long queue costs each allocation little.
  size_t budget = wait ? deferred.size() : std::min<size_t>(deferred.size(), 8);
  for (; budget > 0; budget--) {
    std::list<Deferred> first;
    first.splice(first.begin(), deferred, deferred.begin());
    const Deferred& entry = first.front();
    auto passed = [wait](const Mark& mark) {
      if (!wait) return mark.passed();
      mark.wait();
      return true;
    };
    if (!std::all_of(entry.marks.begin(), entry.marks.end(), passed)) {
      deferred.splice(deferred.end(), first);
      continue;
    }
    Block* block = entry.block;
    if (block->size_class == kLargeClass) {
      return_chunk(static_cast<Chunk*>(block->segment));
    } else {
      give_back(block);
    }
  }
  deferred_count.store(static_cast<uint32_t>(deferred.size()), std::memory_order_relaxed);
}

void CachingAllocator::empty_cache() {
  std::lock_guard guard(state_->mutex);
  if (state_->closed) return;
  state_->poll_deferred(false);
  state_->release_segments(false);
  if (state_->grows) state_->release_reservations(false);
}

void CachingAllocator::set_limit(uint64_t bytes) {
  state_->limit.store(bytes);
  std::lock_guard guard(state_->mutex);
  if (state_->closed) return;
  if (bytes != 0 && state_->reserved > bytes) {
    state_->poll_deferred(true);
    state_->release_segments(false);
    state_->release_reservations(false);
  }
  if (!state_->grows) state_->reserve_rest();
}

void CachingAllocator::set_growth(bool on) {
  std::lock_guard guard(state_->mutex);
  if (state_->closed) return;
  if (!on) {
    state_->reserve_rest();
  } else if (!state_->grows) {
    state_->poll_deferred(false);
    state_->release_segments(false);
    state_->release_reservations(false);
  }
  state_->grows = on;
}

void CachingAllocator::fail_allocations(uint64_t after, uint64_t count) {
  std::lock_guard guard(state_->mutex);
  state_->fail_after = after;
  state_->fail_count = count;
  state_->failing = count != 0;
}

void CachingAllocator::State::count_to_failure(uint64_t asked) {
  std::lock_guard guard(mutex);
  if (!failing) return;
  if (fail_after > 1) {
    fail_after--;
    return;
  }
  if (fail_count != UINT64_MAX && --fail_count == 0) failing = false;
  pg_error error = pg::make_error();
  std::snprintf(error.message, sizeof error.message, "a test asked for this failure");
  fail_exhausted(asked, error);
}

void CachingAllocator::reset_peak() {
  std::lock_guard guard(state_->spin);
  state_->peak.store(state_->live);
}

MemoryStats CachingAllocator::stats() const {
  const State& s = *state_;
  return {s.live, s.reserved, s.peak, s.limit, s.allocations, s.device_allocations, s.requested, s.grows};
}

void CachingAllocator::close() noexcept {
  std::lock_guard guard(state_->mutex);
  if (state_->closed.exchange(true)) return;
  state_->deferred.clear();
  state_->deferred_count = 0;
  state_->release_segments(true);
  state_->release_reservations(true);
}

}  // namespace perigee
