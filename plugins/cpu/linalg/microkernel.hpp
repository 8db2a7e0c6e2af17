// SPDX-License-Identifier: Apache-2.0
// The innermost loop of the blocked product: a panel of a times a panel of b, with all sums in registers.
#pragma once

#include <cstdint>

namespace pg::cpu {

template <class A>
struct Tile {
  int64_t depth;
  const A *a, *b;  // panels
  A* c;            // rows of c, `step` elements apart, whose columns lie side by side
  int64_t step;
  const A* first;  // a row that is added to every row, or NULL
  bool add;        // c += instead of c =
};

// A microtile of `rows` x `columns`, the widths of the panels. multiply[i] computes its first (i + 1) * rows / 3 rows.
template <class A>
struct Microkernel {
  int64_t rows, columns;
  void (*multiply[3])(const Tile<A>&);
};

// The best one that this processor has. A: float, double, uint32_t, uint64_t.
template <class A>
const Microkernel<A>& microkernel();

}  // namespace pg::cpu
