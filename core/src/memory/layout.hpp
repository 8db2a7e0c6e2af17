// SPDX-License-Identifier: Apache-2.0
// Places what lives at known times in one block.
#pragma once

#include <cstdint>
#include <vector>

namespace perigee {

// Something that is needed from one step to another, both included.
struct Lifetime {
  uint64_t bytes = 0;
  uint32_t first = 0, last = 0;
  uint64_t offset = 0;  // where it was placed
};

// The bytes that it takes in a block.
uint64_t placed_bytes(uint64_t bytes);
// Large ones first, each where the gap between those that live at the same time fits it best. Answers the block's size.
uint64_t place_lifetimes(std::vector<Lifetime>& list);
// What lives at once at least: no placement can do with less.
uint64_t live_at_once(const std::vector<Lifetime>& list);

}  // namespace perigee
