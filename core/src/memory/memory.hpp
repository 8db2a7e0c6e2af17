// SPDX-License-Identifier: Apache-2.0
// Memory of a device: raw allocations by its plugin, cached and accounted for here, the same way for every device.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "perigee/plugin.hpp"

namespace perigee {

// What memory was taken for, named where it runs out. Texts that outlive the memory; NULL: not told.
struct MemoryUse {
  const char* op = nullptr;      // "conv2d"
  const char* layer = nullptr;   // "Net.blocks.0 (Conv2d)"
  const char* origin = nullptr;  // the script's line and the layer: "net.lua:12 in Net.blocks.0 (Conv2d)"
};

// A piece of device memory that is in use or cached. Made and owned by the device's allocator.
struct Block {
  uint64_t buffer = 0;      // the plugin's handle of the raw allocation it is part of
  uint64_t offset = 0;      // bytes into that
  uint64_t bytes = 0;       // capacity; at least what was asked for
  uint64_t asked = 0;       // bytes, while it is in use
  uint32_t home = 0;        // index of the stream it was allocated for
  uint32_t used_on = 0;     // bit i: also used on stream i since; its reuse then waits for that stream
  uint32_t size_class = 0;  // the allocator's own
  Block* next = nullptr;    // in a free list
  void* segment = nullptr;  // the allocator's own
  bool given = false;       // in use
  bool ahead = false;       // taken by a pipeline's thread, and not yet handed to the script
  MemoryUse use;            // while it is
};

struct MemoryStats {
  uint64_t live = 0, reserved = 0, peak = 0, limit = 0;  // bytes
  uint64_t allocations = 0, device_allocations = 0;
  uint64_t requested = 0;  // bytes that were asked for of what is live: without what was rounded up
  bool grows = true;
};

// What the allocator asks of the device whose memory it gives out.
class MemorySource {
 public:
  virtual const std::string& source_name() const = 0;
  virtual int32_t source_id() const { return -1; }  // the device's number, in profiles
  virtual uint64_t memory_total() const = 0;        // bytes; 0: not known
  virtual uint64_t memory_free() { return 0; }      // bytes that could be taken at once; 0: not known
  // A raw allocation, never 0. False where memory is exhausted, with what the device says of it; throws other failures.
  virtual bool map(uint64_t bytes, uint64_t& buffer, pg_error& error) = 0;
  virtual void unmap(uint64_t buffer) noexcept = 0;
  virtual void drain() noexcept = 0;  // waits for all streams
  // Marks what `stream` has been given so far; 0: nothing to wait for. forget() it in the end.
  virtual uint64_t mark(uint32_t stream) = 0;
  virtual bool passed(uint64_t mark) = 0;  // also true when it never will be, because its stream failed
  virtual void wait(uint64_t mark) noexcept = 0;
  virtual void forget(uint64_t mark) noexcept = 0;

 protected:
  ~MemorySource() = default;
};

// Growth, reuse, limits and statistics. A freed block returns at once to its home stream's free list when no other
// stream used it, else when events on those streams have passed. Small blocks come from size classes carved out of
// larger segments; large ones are split and merged within their segment. Thread-safe.
class CachingAllocator {
 public:
  explicit CachingAllocator(MemorySource& source);
  ~CachingAllocator();
  // Throws pg::Error PG_E_OUT_OF_MEMORY, after emptying the cache and asking once more. bytes 0 is allowed.
  Block* alloc(uint64_t bytes, uint32_t stream, const MemoryUse& use = {});
  void free(Block* block) noexcept;
  void hand_over(Block* block) noexcept;  // from a pipeline's thread to the script
  void empty_cache();                     // gives unused segments back to the device
  void set_limit(uint64_t bytes);  // of reserved memory; 0: none. What is cached above it goes back to the device
  // false: the whole limit, or what the device has free, is taken from it at once and nothing more afterwards; a new
  // limit takes or gives back what nobody uses. true, as it begins: memory is taken as it is needed.
  void set_growth(bool on);
  // An instrument of tests: from the `after`th allocation on, `count` fail as if memory had run out. 0, 0: none.
  void fail_allocations(uint64_t after, uint64_t count);
  void reset_peak();  // the peak is what is live now
  MemoryStats stats() const;
  // Called once by the device, before the first block: alignment of blocks, and whether streams matter.
  void configure(uint64_t alignment, bool synchronous);
  // Gives all memory back to the device, which must be idle. Blocks that are still held become void; freeing them
  // stays allowed, asking for more does not.
  void close() noexcept;

 private:
  struct State;
  State* state_;
};

// Bytes live over all devices.
uint64_t live_bytes();
// Of these, what the caller's collector may find: without what pipelines have made ahead. To a pipeline's thread, which
// hands on nearly all that it makes, the bytes that it has taken so far.
uint64_t own_bytes();

}  // namespace perigee
