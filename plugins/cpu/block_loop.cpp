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

// gather where the innermost step is 0: each element stands there as often as the innermost dimension is long.
template <class E>
void gather_repeated(const E* s, int rank, const int64_t* shape, const int64_t* stride, int64_t p, int64_t n, E* t) {
  constexpr int kSize = sizeof(E) == 1 ? 0 : sizeof(E) == 2 ? 1 : sizeof(E) == 4 ? 2 : 3;
  const int64_t times = shape[rank - 1], row = (p + times - 1) / times, head = std::min(n, row * times - p);
  const int64_t rows = (n - head) / times, tail = n - head - rows * times;
  auto part = [&](int64_t index, int64_t count, E* to) {
    if (count == 0) return;
    each_row(rank - 1, shape, stride, index, 1,
             [&](int64_t offset, int64_t, int64_t) { std::fill_n(to, count, s[offset]); });
  };
  part(row - 1, head, t);
  each_row(rank - 1, shape, stride, row, rows, [&](int64_t offset, int64_t m, int64_t at) {
    simd->repeat[kSize](s + offset, stride[rank - 2], m, times, t + head + at * times);
  });
  part(row + rows, tail, t + head + rows * times);
}

}  // namespace

void gather(const void* base, int bytes, int rank, const int64_t* shape, const int64_t* stride, int64_t p, int64_t n,
            void* target) {
  visit_bytes(bytes, [&](auto zero) {
    using E = decltype(zero);
    const E* s = static_cast<const E*>(base);
    E* t = static_cast<E*>(target);
    int64_t step = rank == 0 ? 0 : stride[rank - 1];
    if (step == 0 && rank > 1) return gather_repeated(s, rank, shape, stride, p, n, t);
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
