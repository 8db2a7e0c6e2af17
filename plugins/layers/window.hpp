// SPDX-License-Identifier: Apache-2.0
// Attributes of layers whose window slides over one to three axes: names of axes, checks.
#pragma once

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
  return axes == 1 ? "[N, C, L]" : axes == 2 ? "[N, C, H, W]" : "[N, C, D, H, W]";
}

inline void check_input(const LayerCall& c, uint32_t axes) {
  const pg_tensor& x = c.input().meta();
  if (x.rank != axes + 2) {
    fail_argument(format("expected an input %s, got %s", input_text(axes), shape_text(x).c_str()));
  }
}

}  // namespace pg
