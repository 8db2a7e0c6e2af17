// SPDX-License-Identifier: Apache-2.0
// Weights of int8 or int4 with scales as panels of the blocked product: they are widened where it packs, a tile at a
// time, and never lie in memory as floats.
#pragma once

#include "linalg/gemm.hpp"

namespace pg::cpu {

struct NarrowPanels {
  const uint8_t* weight;  // a row a column of the product, of `row_bytes`
  const float* scale;     // [columns, groups]
  int64_t columns, row_bytes, groups, size;
  bool four;  // two numbers a byte, each plus 8, the first in the lower half

  // Holds while this stays where it is.
  PanelSource source() const;
};

}  // namespace pg::cpu
