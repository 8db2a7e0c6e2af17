// SPDX-License-Identifier: Apache-2.0
// What BLAS can say about a matrix: row-major with a leading dimension, or transposed. Everything else is copied first.
#pragma once

#include "linalg/batch.hpp"

namespace pg::cpu {

// A [rows, columns] operand. Where `copy` is set, the strides are those of the dense copy.
struct BlasOperand {
  bool transposed = false, copy = false;
  int64_t leading = 1;
};

inline BlasOperand blas_operand(int64_t rows, int64_t columns, Strides s) {
  bool plain_columns = s.column == 1 || columns == 1, plain_rows = s.row == 1 || rows == 1;
  if (plain_columns && (rows == 1 || s.row >= columns)) return {false, false, rows == 1 ? columns : s.row};
  if (plain_rows && (columns == 1 || s.column >= rows)) return {true, false, columns == 1 ? rows : s.column};
  return {false, true, columns};
}

}  // namespace pg::cpu
