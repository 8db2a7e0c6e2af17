// SPDX-License-Identifier: Apache-2.0
// Attributes of layers whose window slides over one to three axes: names of axes, checks.
#pragma once

#include "perigee/functions.hpp"
#include "perigee/layer.hpp"

namespace pg {

inline pg_ints repeated(uint32_t n, int64_t number) {
  pg_ints list{};
  while (list.count < n) list.value[list.count++] = number;
  return list;
}

// A list has a number for each axis; an optional one may be empty.
inline void check_axes(const pg_ints& list, const char* name, uint32_t axes, bool optional = false) {
  if (list.count == axes || (optional && list.count == 0)) return;
  fail_argument(format("%s takes one number or %u, got %lld", name, axes, static_cast<long long>(list.count)));
}

inline const char* input_text(uint32_t axes) {
  return axes == 1   ? "[N, C, L] or [C, L]"
         : axes == 2 ? "[N, C, H, W] or [C, H, W]"
                     : "[N, C, D, H, W] or [C, D, H, W]";
}

// The input as a batch: an example alone becomes one of one, and so does what is made of it become an example again.
struct Batch {
  Value x;
  bool alone;

  Batch(const LayerCall& c, uint32_t axes) : x(c.input()), alone(x.meta().rank == axes + 1) {
    if (!alone && x.meta().rank != axes + 2) {
      fail_argument(format("expected an input %s, got %s", input_text(axes), shape_text(x.meta()).c_str()));
    }
    if (alone) x = unsqueeze(x, 0);
  }
  Value result(Value y) const { return alone && y ? squeeze(y, make_ints({0})) : y; }
};

}  // namespace pg
