// SPDX-License-Identifier: Apache-2.0
#include "base/rng.hpp"

#include <mutex>

namespace perigee {
namespace {
std::mutex mutex;
RngState state{0, 0};
}  // namespace

void manual_seed(uint64_t seed) { set_rng_state({seed, 0}); }

RngState rng_state() {
  std::lock_guard lock(mutex);
  return state;
}

void set_rng_state(RngState value) {
  std::lock_guard lock(mutex);
  state = value;
}

namespace {
// A block an element is enough for every dtype and keeps later draws where they are when a dtype changes.
uint64_t blocks(int64_t elements) { return elements > 0 ? static_cast<uint64_t>(elements) : 1; }
}  // namespace

RngState draw(int64_t elements) {
  std::lock_guard lock(mutex);
  RngState begin = state;
  state.offset += blocks(elements);
  return begin;
}

void undo_draw(int64_t elements, RngState begin) {
  std::lock_guard lock(mutex);
  if (state.seed == begin.seed && state.offset == begin.offset + blocks(elements)) state = begin;
}

}  // namespace perigee
