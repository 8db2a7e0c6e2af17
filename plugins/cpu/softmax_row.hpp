// SPDX-License-Identifier: Apache-2.0
// Lines of softmax, of its logarithm, and of the ways back, in T: float or double.
#pragma once

#include "axis_rows.hpp"

namespace cpu {

// Room for a tile of short lines.
template <class T>
struct LineTile {
  alignas(64) T element[kShortLine * kLines<T>];
};

template <class T>
void softmax_row(bool log, const T* x, T* y, int64_t n) {
  if (n > 0) simd->softmax_row[log][sizeof(T) == 8](x, y, n);
}

}  // namespace cpu
