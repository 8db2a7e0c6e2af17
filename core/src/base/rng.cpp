// SPDX-License-Identifier: Apache-2.0
#include "base/rng.hpp"

#include <mutex>

namespace perigee {
namespace {
std::mutex mutex;
RngState state{0, 0};
thread_local RngState* own_state = nullptr;  // of the thread, where it has one

// The state in force; the lock is held where threads share it.
template <class Use>
auto with_state(Use&& use) {
  if (own_state != nullptr) return use(*own_state);
  std::lock_guard lock(mutex);
  return use(state);
}
}  // namespace

ThreadRandom::ThreadRandom(RngState begin) : state_(begin), before_(own_state) { own_state = &state_; }
ThreadRandom::~ThreadRandom() { own_state = before_; }

void manual_seed(uint64_t seed) { set_rng_state({seed, 0}); }

RngState rng_state() {
  return with_state([](RngState& s) { return s; });
}

void set_rng_state(RngState value) {
  with_state([&](RngState& s) { s = value; });
}

namespace {
// A block an element is enough for every dtype and keeps later draws where they are when a dtype changes.
uint64_t blocks(int64_t elements) { return elements > 0 ? static_cast<uint64_t>(elements) : 1; }
}  // namespace

RngState draw(int64_t elements) {
  return with_state([&](RngState& s) {
    RngState begin = s;
    s.offset += blocks(elements);
    return begin;
  });
}

void undo_draw(int64_t elements, RngState begin) {
  with_state([&](RngState& s) {
    if (s.seed == begin.seed && s.offset == begin.offset + blocks(elements)) s = begin;
  });
}

}  // namespace perigee
