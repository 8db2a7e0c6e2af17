// SPDX-License-Identifier: Apache-2.0
// What the blocked product's microkernel reads and how what it computes is written back. A panel is `Width` rows of a
// (or columns of b), side by side at every depth: element (i, p) at panel[p * Width + i], in the accumulator's type.
#pragma once

#include "linalg/gemm.hpp"
#include "linalg/numbers.hpp"

namespace pg::cpu {

// Writes one panel of `depth`: element (i, p) lies at from[i * across + p * along]; from `filled` on there are zeros.
// May write seven elements more than the panel has, where Width is no multiple of eight.
template <class T, int Width>
void pack_panel(const T* from, int64_t across, int64_t along, int64_t filled, int64_t depth, Accumulator<T>* panel);
constexpr int64_t kPanelSlack = 8;

// Writes sums[rows][`step`] to `rows` rows and `columns` columns of c, rounded once; adds to what c holds if `add`.
template <class T>
void write_sums(const Accumulator<T>* sums, int64_t step, int64_t rows, int64_t columns, Matrix<T> c, bool add);

}  // namespace pg::cpu
