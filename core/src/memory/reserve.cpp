// SPDX-License-Identifier: Apache-2.0
// Memory that is taken from a device in advance, where it must not grow: segments are parts of it. Every function runs
// with `mutex` held.
#include <algorithm>
#include <iterator>

#include "memory/state.hpp"

namespace perigee {

// The smallest free part that has room: large ones stay whole.
bool CachingAllocator::State::take_reserved(uint64_t bytes, Segment& into) {
  const uint64_t need = (bytes + unit - 1) / unit * unit;
  Reservation* found = nullptr;
  std::list<Reservation::Part>::iterator best;
  for (Reservation& r : reservations) {
    for (auto part = r.parts.begin(); part != r.parts.end(); ++part) {
      if (!part->free || part->bytes < need || (found != nullptr && part->bytes >= best->bytes)) continue;
      found = &r;
      best = part;
    }
  }
  if (found == nullptr) return false;
  if (best->bytes > need) {
    found->parts.insert(std::next(best), {best->offset + need, best->bytes - need, true});
    best->bytes = need;
  }
  best->free = false;
  into.buffer = found->buffer;
  into.offset = best->offset;
  into.bytes = bytes;
  into.reservation = found;
  into.part = best;
  return true;
}

void CachingAllocator::State::give_reserved(const Segment& segment) {
  auto& parts = segment.reservation->parts;
  auto part = segment.part;
  part->free = true;
  if (auto after = std::next(part); after != parts.end() && after->free) {
    part->bytes += after->bytes;
    parts.erase(after);
  }
  if (part != parts.begin() && std::prev(part)->free) {
    std::prev(part)->bytes += part->bytes;
    parts.erase(part);
  }
}

void CachingAllocator::State::reserve_rest() {
  const uint64_t cap = limit.load();
  if (cap == 0 && source.memory_free() == 0) {
    pg::fail(PG_E_FAILED_PRECONDITION,
             source.source_name() + " does not say how much memory it has free; set a limit first");
  }
  poll_deferred(false);
  release_segments(false);  // what is only cached becomes part of what is taken
  const uint64_t held = reserved.load();
  if (cap != 0 && held >= cap) return;
  uint64_t bytes = (cap != 0 ? cap - held : source.memory_free()) / unit * unit;
  if (bytes == 0) return;
  std::list<Reservation> fresh(1);
  Reservation& r = fresh.front();
  pg_error error = pg::make_error();
  // What a device says is free need not be free in one piece; a limit is taken at its word.
  for (int tries = 0; !source.map(bytes, r.buffer, error); tries++) {
    if (cap != 0 || tries == 8 || bytes < 16 * unit) fail_exhausted(bytes, error);
    bytes -= bytes / 16 / unit * unit;
  }
  r.bytes = bytes;
  device_allocations.fetch_add(1, std::memory_order_relaxed);
  reserved.fetch_add(bytes, std::memory_order_relaxed);
  try {
    r.parts.push_back({0, bytes, true});
  } catch (const std::bad_alloc&) {
    source.unmap(r.buffer);
    reserved.fetch_sub(bytes, std::memory_order_relaxed);
    throw;
  }
  reservations.splice(reservations.end(), fresh);
}

void CachingAllocator::State::release_reservations(bool all) {
  for (auto r = reservations.begin(); r != reservations.end();) {
    const bool unused = r->parts.size() == 1 && r->parts.front().free;
    if (!all && !unused) {
      ++r;
      continue;
    }
    source.unmap(r->buffer);
    reserved.fetch_sub(r->bytes, std::memory_order_relaxed);
    r = reservations.erase(r);
  }
}

}  // namespace perigee
