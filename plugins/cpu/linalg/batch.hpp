// SPDX-License-Identifier: Apache-2.0
// Walking the batch of a product, serially or as slices for threads.
#pragma once

#include <algorithm>

#include "linalg/product.hpp"
#include "linalg/work.hpp"

namespace pg::cpu {

struct BatchOffset {
  int64_t a = 0, b = 0, c = 0;  // in elements
};

inline BatchOffset batch_offset(const ProductShape& s, int64_t index) {
  BatchOffset offset;
  for (size_t i = s.batch.size(); i-- > 0; index /= s.batch[i].size) {
    int64_t at = index % s.batch[i].size;
    offset.a += at * s.batch[i].a, offset.b += at * s.batch[i].b, offset.c += at * s.batch[i].c;
  }
  return offset;
}

// Whether the threads share out whole products of the batch; otherwise each product is shared out among them.
inline bool split_by_batch(const ProductShape& s, int64_t threads) {
  int64_t count = s.batch_count(), work = work_of({s.m, s.n, s.k});
  return threads > 1 && count > 1 && (count >= 4 * threads || work < 200000);
}

// body(slice, offset) for every product; slices below `slices` run at the same time.
template <class Body>
void for_batch(const ProductShape& s, int64_t slices, Body&& body) {
  int64_t count = s.batch_count();
  auto run = [&](int64_t slice) {
    for (int64_t i = count * slice / slices; i < count * (slice + 1) / slices; i++) body(slice, batch_offset(s, i));
  };
  if (slices <= 1) return run(0);
  parallel_for(slices, 1, [&](int64_t begin, int64_t end) {
    for (int64_t slice = begin; slice < end; slice++) run(slice);
  });
}

}  // namespace pg::cpu
