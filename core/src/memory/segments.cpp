// SPDX-License-Identifier: Apache-2.0
// Segments: raw allocations of the device, split into chunks and merged again. Every function runs with `mutex` held.
#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "memory/state.hpp"

namespace perigee {

namespace {

constexpr uint64_t kMiB = 1024 * 1024;

// Sizes that live together: small ones must not break up what a large tensor will want back.
uint32_t kind_of(uint64_t bytes) { return bytes < kMiB ? 0 : bytes <= 10 * kMiB ? 1 : 2; }

uint64_t segment_size(uint64_t bytes) {
  switch (kind_of(bytes)) {
    case 0: return 2 * kMiB;
    case 1: return 20 * kMiB;
    default: return (bytes + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
  }
}

// What is left of a chunk becomes one of its own when it is worth having.
bool worth_splitting(uint64_t rest, uint64_t bytes, uint64_t unit) {
  return rest >= std::max<uint64_t>(8 * unit, std::min<uint64_t>(kMiB, bytes / 8));
}

std::unique_ptr<Chunk> make_chunk() {
  auto chunk = std::make_unique<Chunk>();
  FreeChunks alone;
  alone.insert(chunk.get());
  chunk->place = alone.extract(alone.begin());
  return chunk;
}

void put(FreeChunks& chunks, Chunk* chunk) {
  chunk->free = true;
  chunks.insert(std::move(chunk->place));
}

}  // namespace

Chunk* CachingAllocator::State::find_chunk(uint64_t bytes, uint32_t home, uint32_t kind) {
  auto& chunks = pool(home).free_chunks[kind];
  auto at = chunks.lower_bound(bytes);
  if (at == chunks.end()) return nullptr;
  Chunk* chunk = *at;
  const uint64_t rest = chunk->block.bytes - bytes;
  Chunk* tail = worth_splitting(rest, bytes, unit) ? make_chunk().release() : nullptr;
  chunk->place = chunks.extract(at);
  chunk->free = false;
  if (tail != nullptr) {
    tail->segment = chunk->segment;
    tail->block = chunk->block;
    tail->block.offset += bytes;
    tail->block.bytes = rest;
    tail->block.segment = tail;
    tail->before = chunk;
    tail->after = chunk->after;
    if (tail->after != nullptr) tail->after->before = tail;
    chunk->after = tail;
    chunk->block.bytes = bytes;
    put(chunks, tail);
  }
  return chunk;
}

bool CachingAllocator::State::map_raw(uint64_t bytes, Segment& into, pg_error& error) {
  if (take_reserved(bytes, into)) return true;
  const uint64_t cap = limit.load(), held = reserved.load();
  if (!grows || (cap != 0 && (held > cap || bytes > cap - held))) return false;
  if (!source.map(bytes, into.buffer, error)) return false;
  into.bytes = bytes;
  device_allocations.fetch_add(1, std::memory_order_relaxed);
  reserved.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

bool CachingAllocator::State::map_segment(uint64_t bytes, uint32_t kind, uint32_t home, pg_error& error) {
  std::unique_ptr<Chunk> header = make_chunk();
  std::list<Segment> fresh(1);
  StreamPool& owner = pool(home);
  if (!map_raw(bytes, fresh.front(), error)) return false;

  segments.splice(segments.end(), fresh);
  Segment& segment = segments.back();
  segment.self = std::prev(segments.end());
  segment.home = home;
  segment.kind = kind;
  Chunk* chunk = header.release();
  chunk->segment = &segment;
  chunk->block.buffer = segment.buffer;
  chunk->block.offset = segment.offset;
  chunk->block.bytes = bytes;
  chunk->block.home = home;
  chunk->block.size_class = kLargeClass;
  chunk->block.segment = chunk;
  segment.first = chunk;
  put(owner.free_chunks[kind], chunk);
  return true;
}

// The usual size first; the bare need when memory is short.
bool CachingAllocator::State::grow(uint64_t bytes, uint32_t home, pg_error& error) {
  const uint32_t kind = kind_of(bytes);
  if (exact) return map_segment(bytes, kind, home, error);
  if (map_segment(segment_size(bytes), kind, home, error)) return true;
  return segment_size(bytes) != bytes && map_segment(bytes, kind, home, error);
}

Chunk* CachingAllocator::State::take_chunk(uint64_t bytes, uint32_t home) {
  if (closed) pg::fail(PG_E_FAILED_PRECONDITION, source.source_name() + " has been shut down");
  const uint32_t kind = kind_of(bytes);
  pg_error error = pg::make_error();
  // More may have been reserved before the limit was set.
  auto exceeds = [&] { return limit.load() != 0 && live.load() + bytes > limit.load(); };
  if (exceeds()) {
    poll_deferred(true);
    if (exceeds()) fail_exhausted(bytes, error);
  }
  if (Chunk* chunk = find_chunk(bytes, home, kind)) return chunk;
  if (grow(bytes, home, error)) return find_chunk(bytes, home, kind);
  // Exhausted. What other streams still used comes back first, then what is cached.
  auto find_any = [&]() -> Chunk* {
    for (uint32_t i = 0; i < kChunkKinds; i++) {
      if (Chunk* chunk = find_chunk(bytes, home, i)) return chunk;
    }
    return nullptr;
  };
  poll_deferred(true);
  if (Chunk* chunk = find_any()) return chunk;
  release_segments(false);
  if (Chunk* chunk = find_any()) return chunk;
  if (grow(bytes, home, error)) return find_chunk(bytes, home, kind);
  fail_exhausted(bytes, error);
}

void CachingAllocator::State::return_chunk(Chunk* chunk) {
  auto& chunks = pool(chunk->segment->home).free_chunks[chunk->segment->kind];
  auto absorb = [](Chunk* left, Chunk* right) {
    left->block.bytes += right->block.bytes;
    left->after = right->after;
    if (left->after != nullptr) left->after->before = left;
    delete right;
  };
  if (Chunk* after = chunk->after; after != nullptr && after->free) {
    after->place = chunks.extract(after);
    absorb(chunk, after);
  }
  if (Chunk* before = chunk->before; before != nullptr && before->free) {
    before->place = chunks.extract(before);
    absorb(before, chunk);
    chunk = before;
  }
  put(chunks, chunk);
  if (!exact) return;
  source.drain();
  release_segment(chunk->segment->self);
}

// Turns slabs whose blocks are all free back into chunks.
void CachingAllocator::State::release_slabs(uint32_t home) {
  Chunk* whole = nullptr;
  {
    std::lock_guard guard(spin);
    auto& lists = pool(home).small;
    for (Block*& list : lists) {
      for (Block* block = list; block != nullptr; block = block->next) static_cast<Chunk*>(block->segment)->found++;
      Block** link = &list;
      while (Block* block = *link) {
        auto* chunk = static_cast<Chunk*>(block->segment);
        if (chunk->found < chunk->small_count) {
          link = &block->next;
          continue;
        }
        *link = block->next;
        if (++chunk->removed == chunk->small_count) chunk->next_whole = std::exchange(whole, chunk);
      }
      for (Block* block = list; block != nullptr; block = block->next) static_cast<Chunk*>(block->segment)->found = 0;
    }
  }
  while (Chunk* chunk = whole) {
    whole = chunk->next_whole;
    chunk->small.reset();
    chunk->small_count = chunk->found = chunk->removed = 0;
    return_chunk(chunk);
  }
}

void CachingAllocator::State::release_segments(bool all) {
  if (!all) {
    for (uint32_t home = 0; home < kMaxStreams; home++) {
      if (pools[home].load() != nullptr) release_slabs(home);
    }
  }
  auto whole = [](const Segment& segment) { return segment.first->free && segment.first->after == nullptr; };
  if (!all && std::none_of(segments.begin(), segments.end(), whole)) return;
  source.drain();  // a block that is free here may still be written by work that was submitted before
  for (auto segment = segments.begin(); segment != segments.end();) {
    if (!all && !whole(*segment)) {
      ++segment;
      continue;
    }
    if (all) {
      give_to_device(*segment++);  // headers stay, for blocks that are held beyond the device's end
    } else {
      release_segment(segment++);
    }
  }
}

void CachingAllocator::State::give_to_device(const Segment& segment) {
  if (segment.reservation != nullptr) return give_reserved(segment);
  source.unmap(segment.buffer);
  reserved.fetch_sub(segment.bytes, std::memory_order_relaxed);
}

void CachingAllocator::State::release_segment(std::list<Segment>::iterator segment) {
  give_to_device(*segment);
  pool(segment->home).free_chunks[segment->kind].erase(segment->first);
  delete segment->first;
  segments.erase(segment);
}

CachingAllocator::State::~State() {
  for (Segment& segment : segments) {
    for (Chunk* chunk = segment.first; chunk != nullptr;) delete std::exchange(chunk, chunk->after);
  }
  for (auto& pool : pools) delete pool.load();
}

// Blocks of one use count together. Unused ones may be given out meanwhile, by threads that need no `mutex` for it.
std::string CachingAllocator::State::holders_text() {
  struct Share {
    uint64_t bytes = 0, tensors = 0;
  };
  std::map<std::tuple<const char*, const char*>, Share> shares;
  auto add = [&](const Block& block) {
    if (!block.given) return;
    const char* op = block.use.op != nullptr ? block.use.op : "contents and copies";
    Share& share = shares[{op, block.use.origin != nullptr ? block.use.origin : block.use.layer}];
    share.bytes += block.bytes;
    share.tensors++;
  };
  {
    std::lock_guard spinning(spin);
    for (const Segment& segment : segments)
      for (const Chunk* chunk = segment.first; chunk != nullptr; chunk = chunk->after) {
        for (uint32_t i = 0; i < chunk->small_count; i++) add(chunk->small[i]);
        if (!chunk->free && chunk->small_count == 0) add(chunk->block);
      }
  }
  std::vector<std::pair<std::tuple<const char*, const char*>, Share>> largest(shares.begin(), shares.end());
  std::sort(largest.begin(), largest.end(), [](auto& a, auto& b) { return a.second.bytes > b.second.bytes; });
  constexpr size_t named = 3;  // a message has room for so many
  std::string text;
  for (size_t i = 0; i < std::min(named, largest.size()); i++) {
    auto& [use, share] = largest[i];
    text += pg::format("%s%s in %llu tensor%s of %s", text.empty() ? "" : ", ", bytes_text(share.bytes).c_str(),
                       static_cast<unsigned long long>(share.tensors), share.tensors == 1 ? "" : "s", std::get<0>(use));
    if (std::get<1>(use) != nullptr) text += std::string(" (") + std::get<1>(use) + ")";
  }
  return text;
}

void CachingAllocator::State::fail_exhausted(uint64_t bytes, const pg_error& error) {
  const uint64_t cap = limit.load(), in_use = live.load(), held = reserved.load();
  const uint64_t total = cap != 0 ? cap : source.memory_total();
  std::string text =
      "tried to allocate " + bytes_text(bytes) + " on " + source.source_name() + "; " + bytes_text(in_use);
  if (total != 0) text += " of " + bytes_text(total);
  text += " are live, " + bytes_text(held > in_use ? held - in_use : 0) + " are cached";
  if (cap != 0) text += ", the limit set for this device is " + bytes_text(cap);
  if (error.message[0] != '\0') text += std::string("; the device says: ") + error.message;
  std::string holders = holders_text();
  if (!holders.empty()) text += "; most is held by " + holders;
  pg::fail(PG_E_OUT_OF_MEMORY, text);
}

}  // namespace perigee
