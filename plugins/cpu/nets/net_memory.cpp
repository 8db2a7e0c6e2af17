// SPDX-License-Identifier: Apache-2.0
#include "nets/net_memory.hpp"

#include <algorithm>

#include "linalg/dense.hpp"

namespace pg::cpu {

size_t NetMemory::add(uint64_t bytes, size_t now) {
  buffers_.push_back({scratch_bytes(bytes), 0, now, now});
  return buffers_.size() - 1;
}

void NetMemory::lay_out() {
  std::vector<Buffer*> order, placed;
  for (Buffer& b : buffers_) order.push_back(&b);
  std::stable_sort(order.begin(), order.end(), [](const Buffer* a, const Buffer* b) { return a->bytes > b->bytes; });
  bytes_ = 0;
  for (Buffer* b : order) {
    b->offset = 0;
    for (const Buffer* other : placed) {  // in the order of their places
      if (other->last < b->first || b->last < other->first) continue;
      if (b->offset + b->bytes <= other->offset) break;
      b->offset = std::max(b->offset, other->offset + other->bytes);
    }
    placed.insert(std::upper_bound(placed.begin(), placed.end(), b,
                                   [](const Buffer* x, const Buffer* y) { return x->offset < y->offset; }),
                  b);
    bytes_ = std::max(bytes_, b->offset + b->bytes);
  }
}

}  // namespace pg::cpu
