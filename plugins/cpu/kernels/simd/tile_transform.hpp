// SPDX-License-Identifier: Apache-2.0
// A tile of vectors transformed along its columns, then along its rows, as Winograd's way asks for.
#pragma once

#include "vector.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

// From kFrom x kFrom vectors, which read(row, column) answers, to kTo x kTo, which write(row, column, vector) takes.
// line(from, to) transforms a line of them.
template <class V, int kFrom, int kTo, class Line, class Read, class Write>
[[gnu::always_inline]] inline void transform_tile(const Line& line, const Read& read, const Write& write) {
  V half[kFrom][kTo];  // [column][row]
#pragma GCC unroll 6
  for (int k = 0; k < kFrom; k++) {
    V from[kFrom];
#pragma GCC unroll 6
    for (int j = 0; j < kFrom; j++) from[j] = read(j, k);
    line(from, half[k]);
  }
#pragma GCC unroll 6
  for (int j = 0; j < kTo; j++) {
    V from[kFrom], to[kTo];
#pragma GCC unroll 6
    for (int k = 0; k < kFrom; k++) from[k] = half[k][j];
    line(from, to);
#pragma GCC unroll 6
    for (int k = 0; k < kTo; k++) write(j, k, to[k]);
  }
}

}  // namespace
}  // namespace cpu::PG_CPU_ISA
