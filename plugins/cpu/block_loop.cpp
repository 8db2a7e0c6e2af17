// SPDX-License-Identifier: Apache-2.0
#include "block_loop.hpp"

namespace cpu {
namespace {

// Calls row(offset, n, at) for each stretch of the innermost dimension in [p, p + n); `at` counts from 0.
template <class Row>
void each_row(int rank, const int64_t* shape, const int64_t* stride, int64_t p, int64_t n, const Row& row) {
  if (rank == 0) return row(0, n, 0);
  int64_t index[PG_MAX_RANK], offset = 0;
  for (int i = rank - 1; i >= 0; i--) {
    int64_t next = p / shape[i];
    index[i] = p - next * shape[i];
    offset += index[i] * stride[i];
    p = next;
  }
  int last = rank - 1;
  for (int64_t done = 0; done < n;) {
    int64_t m = shape[last] - index[last];
    if (m > n - done) m = n - done;
    row(offset, m, done);
    done += m;
    index[last] += m;
    offset += m * stride[last];
    for (int i = last; i > 0 && index[i] == shape[i]; i--) {
      offset += stride[i - 1] - shape[i] * stride[i];
      index[i] = 0;
      index[i - 1]++;
    }
  }
}

}  // namespace

void gather(const void* base, int bytes, int rank, const int64_t* shape, const int64_t* stride, int64_t p, int64_t n,
            void* target) {
  visit_bytes(bytes, [&](auto zero) {
    using E = decltype(zero);
    const E* s = static_cast<const E*>(base);
    E* t = static_cast<E*>(target);
    int64_t step = rank == 0 ? 0 : stride[rank - 1];
    each_row(rank, shape, stride, p, n, [&](int64_t offset, int64_t m, int64_t at) {
      const E* from = s + offset;
      E* to = t + at;
      if (step == 1) {
        std::memcpy(to, from, static_cast<size_t>(m) * sizeof(E));
      } else if (step == 0) {
        for (int64_t i = 0; i < m; i++) to[i] = *from;
      } else {
        for (int64_t i = 0; i < m; i++) to[i] = from[i * step];
      }
    });
  });
}

void scatter(void* base, int bytes, int rank, const int64_t* shape, const int64_t* stride, int64_t p, int64_t n,
             const void* source) {
  visit_bytes(bytes, [&](auto zero) {
    using E = decltype(zero);
    E* t = static_cast<E*>(base);
    const E* s = static_cast<const E*>(source);
    int64_t step = rank == 0 ? 0 : stride[rank - 1];
    each_row(rank, shape, stride, p, n, [&](int64_t offset, int64_t m, int64_t at) {
      for (int64_t i = 0; i < m; i++) t[offset + i * step] = s[at + i];
    });
  });
}

}  // namespace cpu
