// SPDX-License-Identifier: Apache-2.0
// Strides of views.
#pragma once

#include <algorithm>

#include "../rules.hpp"

namespace pg {

// Strides under which the elements of x (in row-major order) read as `shape`; false where no strides do. Axes of x that
// follow each other in memory form a block; each block must be cut into whole axes of the new shape.
inline bool reshape_strides(const pg_tensor& x, const Shape& shape, int64_t* stride) {
  int64_t total = element_count(x);
  if (total == 0 || x.rank == 0) {
    uint64_t step = 1;  // of no elements none is found by it: the product of the other sizes may wrap around
    for (uint32_t i = shape.rank; i-- > 0;) {
      stride[i] = static_cast<int64_t>(step);
      step *= static_cast<uint64_t>(std::max<int64_t>(shape.dims[i], 1));
    }
    return true;
  }
  int64_t next = static_cast<int64_t>(shape.rank) - 1;  // the next new axis to place, from the right
  int64_t base = x.stride[x.rank - 1], in_block = 1, placed = 1;
  for (int64_t i = static_cast<int64_t>(x.rank) - 1; i >= 0; i--) {
    in_block *= x.shape[i];
    bool ends = i == 0 || (x.shape[i - 1] != 1 && x.stride[i - 1] != in_block * base);
    if (!ends) continue;
    while (next >= 0 && (placed < in_block || shape.dims[next] == 1)) {
      stride[next] = placed * base;
      placed *= shape.dims[next--];
    }
    if (placed != in_block) return false;
    if (i > 0) {
      base = x.stride[i - 1];
      in_block = placed = 1;
    }
  }
  return next < 0;
}

// Output 0 as a view of x with another shape; where strides cannot say it, the host copies first.
inline void reshape_output(ShapeContext& c, const Shape& shape) {
  OutputMeta out = c.out(0).set(c.dtype(0), shape);
  const pg_tensor& x = c.in(0);
  if (c.symbolic() || x.stride == nullptr) return;
  int64_t stride[PG_MAX_RANK];
  if (reshape_strides(x, shape, stride))
    out.view(stride, 0);
  else
    out.view_of_copy();
}

// Strides under which x broadcasts to `shape`.
inline void expand_output(ShapeContext& c, const Shape& shape) {
  const pg_tensor& x = c.in(0);
  OutputMeta out = c.out(0).set(c.dtype(0), shape);
  if (c.symbolic() || x.stride == nullptr) return;
  int64_t stride[PG_MAX_RANK];
  uint32_t added = shape.rank - x.rank;
  for (uint32_t i = 0; i < shape.rank; i++) {
    bool repeats = i < added || (x.shape[i - added] == 1 && shape.dims[i] != 1);
    stride[i] = repeats ? 0 : x.stride[i - added];
  }
  out.view(stride, 0);
}

}  // namespace pg
