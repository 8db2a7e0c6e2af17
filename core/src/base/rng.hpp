// SPDX-License-Identifier: Apache-2.0
// The generator's state: a seed, and how many counter blocks have been handed out.
#pragma once

#include <cstdint>

namespace perigee {

struct RngState {
  uint64_t seed, offset;
};
void manual_seed(uint64_t seed);
RngState rng_state();
void set_rng_state(RngState state);
// Reserves counter blocks for `elements` draws and returns where they begin.
RngState draw(int64_t elements);
// Gives a reservation that begins at `begin` back, unless another came after it.
void undo_draw(int64_t elements, RngState begin);

// While it lives the thread draws from a state of its own, whatever others draw meanwhile.
class ThreadRandom {
 public:
  explicit ThreadRandom(RngState begin);
  ~ThreadRandom();
  ThreadRandom(const ThreadRandom&) = delete;
  ThreadRandom& operator=(const ThreadRandom&) = delete;

 private:
  RngState state_;
  RngState* before_;
};

}  // namespace perigee
