// SPDX-License-Identifier: Apache-2.0
// The caching allocator's insides, shared by memory.cpp (small blocks, statistics) and segments.cpp. Giving back asks
// for no memory: it happens where there is none left.
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/profile.hpp"
#include "memory/memory.hpp"

namespace perigee {

// Held for a handful of instructions only: an uncontended one costs half of a std::mutex.
class SpinLock {
 public:
  void lock() {
    for (int tries = 0; held_.exchange(true, std::memory_order_acquire);) {
      while (held_.load(std::memory_order_relaxed)) {
        if (++tries > 100) std::this_thread::yield();
      }
    }
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

constexpr uint32_t kLargeClass = 0xffffu;  // Block::size_class of a chunk of a segment
constexpr uint32_t kEmptyClass = 0xfffeu;  // of a block of zero bytes
constexpr uint32_t kSmallUnits = 512;      // small: up to so many alignment units (32 KiB at 64 bytes)
constexpr uint32_t kSmallClasses = 16 + 5 * 4;
constexpr uint32_t kMaxStreams = 32;
constexpr uint32_t kChunkKinds = 3;  // below 1 MiB, up to 10 MiB, larger

// Small sizes in units: 1..16, then four steps a doubling up to kSmallUnits.
inline uint32_t class_of(uint64_t units) {
  if (units <= 16) return static_cast<uint32_t>(units - 1);
  uint32_t log = 63 - static_cast<uint32_t>(__builtin_clzll(units - 1));  // 2^log < units <= 2^(log + 1)
  return 16 + (log - 4) * 4 + static_cast<uint32_t>((units - 1 - (1ull << log)) >> (log - 2));
}
inline uint32_t class_units(uint32_t size_class) {
  if (size_class < 16) return size_class + 1;
  uint32_t log = 4 + (size_class - 16) / 4, step = (size_class - 16) % 4 + 1;
  return (1u << log) + (step << (log - 2));
}

bool exact_memory();

// A raw allocation that was taken in advance, and its parts: free ones, and one a segment.
struct Reservation {
  struct Part {
    uint64_t offset = 0, bytes = 0;
    bool free = true;
  };
  uint64_t buffer = 0, bytes = 0;
  std::list<Part> parts;
};

// One raw allocation of the device, or a part of a reservation.
struct Segment {
  uint64_t buffer = 0, offset = 0, bytes = 0;
  Reservation* reservation = nullptr;
  std::list<Reservation::Part>::iterator part;
  uint32_t home = 0, kind = 0;
  struct Chunk* first = nullptr;
  std::list<Segment>::iterator self;
};

struct Chunk;
struct ChunkOrder {
  using is_transparent = void;
  bool operator()(const Chunk* a, uint64_t bytes) const;
  bool operator()(uint64_t bytes, const Chunk* a) const;
  bool operator()(const Chunk* a, const Chunk* b) const;
};
using FreeChunks = std::set<Chunk*, ChunkOrder>;

// A part of a segment: free, given out as a large block, or cut into small blocks of one class.
struct Chunk {
  Block block;
  Segment* segment = nullptr;
  Chunk* before = nullptr;  // neighbours in the segment
  Chunk* after = nullptr;
  bool free = true;
  std::unique_ptr<Block[]> small;  // blocks of a slab
  uint32_t small_count = 0;
  uint32_t found = 0, removed = 0;  // while slabs are released
  Chunk* next_whole = nullptr;
  FreeChunks::node_type place;  // in the free chunks, while it is none of them: going back asks for no memory
};

inline bool ChunkOrder::operator()(const Chunk* a, uint64_t bytes) const { return a->block.bytes < bytes; }
inline bool ChunkOrder::operator()(uint64_t bytes, const Chunk* a) const { return bytes < a->block.bytes; }
inline bool ChunkOrder::operator()(const Chunk* a, const Chunk* b) const {
  if (a->block.bytes != b->block.bytes) return a->block.bytes < b->block.bytes;
  if (a->segment != b->segment) return a->segment->buffer < b->segment->buffer;
  return a->block.offset < b->block.offset;
}

// Memory freed on one stream is reused in that stream's order, so each has its own.
struct StreamPool {
  std::array<Block*, kSmallClasses> small{};        // guarded by `spin`
  std::array<FreeChunks, kChunkKinds> free_chunks;  // guarded by `mutex`
};

// A mark of the source, forgotten when dropped.
class Mark {
 public:
  Mark(MemorySource& source, uint32_t stream) : source_(&source), mark_(source.mark(stream)) {}
  Mark(Mark&& other) noexcept : source_(other.source_), mark_(std::exchange(other.mark_, 0)) {}
  Mark& operator=(Mark&& other) noexcept {
    std::swap(source_, other.source_);
    std::swap(mark_, other.mark_);
    return *this;
  }
  ~Mark() {
    if (mark_ != 0) source_->forget(mark_);
  }
  bool passed() const { return mark_ == 0 || source_->passed(mark_); }
  void wait() const {
    if (mark_ != 0) source_->wait(mark_);
  }

 private:
  MemorySource* source_;
  uint64_t mark_;
};

// Written under `spin`, read by anyone. `ahead`: of what is live, what blocks that say so hold.
struct MemoryCounters {
  std::atomic<uint64_t> live{0}, ahead{0};
};

struct CachingAllocator::State : MemoryCounters {
  explicit State(MemorySource& source) : source(source) {}
  ~State();

  MemorySource& source;
  uint64_t unit = 64;  // alignment; a power of two. Set when the first block is asked for
  uint32_t unit_shift = 6;
  bool synchronous = false;
  // PERIGEE_MEMORY=exact: nothing is cached, rounded up or shared, so that a memory checker sees where a tensor ends.
  const bool exact = exact_memory();

  SpinLock spin;     // free lists of small blocks, statistics
  std::mutex mutex;  // everything else; never taken while `spin` is held
  std::array<std::atomic<StreamPool*>, kMaxStreams> pools{};
  Block* empty_blocks = nullptr;
  std::list<Segment> segments;
  std::list<Reservation> reservations;
  std::vector<std::unique_ptr<Block>> empties;

  struct Deferred {
    Block* block;
    std::vector<Mark> marks;
  };
  std::list<Deferred> deferred;
  std::atomic<uint32_t> deferred_count{0};
  std::atomic<bool> closed{false};

  // Written under `spin`, read by anyone.
  std::atomic<uint64_t> peak{0}, allocations{0}, reserved{0}, limit{0}, device_allocations{0}, requested{0};
  std::atomic<bool> grows{true}, failing{false};
  uint64_t fail_after = 0, fail_count = 0;  // guarded by `mutex`; looked at while `failing`

  void account_alloc(Block& block, uint64_t asked, const MemoryUse& use) {  // spin held
    constexpr auto relaxed = std::memory_order_relaxed;
    block.given = true;
    block.asked = asked;
    requested.store(requested.load(relaxed) + asked, relaxed);
    block.use = use;
    uint64_t now = live.load(relaxed) + block.bytes;
    live.store(now, relaxed);
    allocations.store(allocations.load(relaxed) + 1, relaxed);
    if (now > peak.load(relaxed)) peak.store(now, relaxed);
    if (uint64_t* taken = ambient().taken; taken != nullptr) [[unlikely]] {
      *taken += block.bytes;
      ahead.store(ahead.load(relaxed) + block.bytes, relaxed);
      block.ahead = true;
    }
    if (ambient().profile != nullptr) [[unlikely]]
      note(ProfileKind::alloc, block);
  }
  void end_ahead(Block& block) {  // spin held
    if (!block.ahead) [[likely]]
      return;
    block.ahead = false;
    ahead.store(ahead.load(std::memory_order_relaxed) - block.bytes, std::memory_order_relaxed);
  }
  void account_free(Block& block) {  // spin held
    block.given = false;
    end_ahead(block);
    requested.store(requested.load(std::memory_order_relaxed) - block.asked, std::memory_order_relaxed);
    live.store(live.load(std::memory_order_relaxed) - block.bytes, std::memory_order_relaxed);
    if (ambient().profile != nullptr) [[unlikely]]
      note(ProfileKind::free, block);
  }
  void note(ProfileKind kind, const Block& block) {
    profile_memory(kind, block.use.op, block.use.layer, block.use.origin, block.bytes, &block, source.source_id());
  }

  StreamPool& pool(uint32_t home);
  Block* alloc_small(uint32_t size_class, uint32_t home, uint64_t asked, const MemoryUse& use);
  Block* alloc_empty(const MemoryUse& use);
  Block* alloc_large(uint64_t bytes, uint32_t home, uint64_t asked, const MemoryUse& use);
  void count_to_failure(uint64_t asked);            // throws where its turn has come
  void give_back(Block* block);                     // into its free list; statistics are the caller's
  void defer(Block* block);                         // until the other streams that used it have passed
  void poll_deferred(bool wait);                    // mutex held
  void refill(uint32_t size_class, uint32_t home);  // mutex held

  // segments.cpp; all with `mutex` held.
  Chunk* take_chunk(uint64_t bytes, uint32_t home);                 // throws out of memory
  Chunk* find_chunk(uint64_t bytes, uint32_t home, uint32_t kind);  // NULL: none fits
  bool grow(uint64_t bytes, uint32_t home, pg_error& error);        // a segment with room for `bytes`
  bool map_segment(uint64_t bytes, uint32_t kind, uint32_t home, pg_error& error);
  void return_chunk(Chunk* chunk);
  void release_slabs(uint32_t home);
  void release_segments(bool all);
  void release_segment(std::list<Segment>::iterator segment);  // one that is free as a whole
  void give_to_device(const Segment& segment);
  bool map_raw(uint64_t bytes, Segment& into, pg_error& error);  // from a reservation, else from the device
  // reserve.cpp; likewise.
  bool take_reserved(uint64_t bytes, Segment& into);
  void give_reserved(const Segment& segment);
  void reserve_rest();                  // up to the limit or what is free; throws out of memory
  void release_reservations(bool all);  // those of which nothing is used
  std::string holders_text();           // "1.2 GiB in 3 tensors of conv2d, ...": who has most
  [[noreturn]] void fail_exhausted(uint64_t bytes, const pg_error& error);
};

std::string bytes_text(uint64_t bytes);  // "1.5 GiB"

}  // namespace perigee
