// SPDX-License-Identifier: Apache-2.0
// Parts of a batch, each the work of one thread.
#pragma once

#include <atomic>

#include "conv/conv.hpp"

namespace pg::cpu {

// Images of a part; 0: the batch stays whole, under deterministic=true on one thread.
int64_t images_of_a_part(const ConvShape& shape);
ConvShape part_of(const ConvShape& shape, int64_t images);

inline const void* advance(const void* data, int64_t bytes) {
  return data == nullptr ? nullptr : static_cast<const char*>(data) + bytes;
}

// run(slot, work) for every work < count, by as many threads as there are slots: whoever the system holds up does not
// hold up the others.
template <class Run>
void deal_out(size_t slots, int64_t count, const Run& run) {
  std::atomic<int64_t> taken{0};
  parallel_for(static_cast<int64_t>(slots), 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; slot++) {
      for (int64_t work; (work = taken.fetch_add(1, std::memory_order_relaxed)) < count;)
        run(static_cast<size_t>(slot), work);
    }
  });
}

}  // namespace pg::cpu
