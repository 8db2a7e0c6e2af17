// SPDX-License-Identifier: Apache-2.0
// Normalisation over the last axes, of which attribute `dims` says how many: layer_norm and rms_norm.
#pragma once

#include "normalise.hpp"

namespace pg {

inline pg_ints trailing(const AttrReader& attrs, uint32_t rank) {
  int64_t dims = attrs.get<int>("dims");
  pg_ints axes{};
  for (int64_t i = static_cast<int64_t>(rank) - dims; i < static_cast<int64_t>(rank); i++) axes.value[axes.count++] = i;
  return axes;
}

inline pg_ints leading(const AttrReader& attrs, uint32_t rank) {
  pg_ints axes{};
  for (int64_t i = 0; i < static_cast<int64_t>(rank) - attrs.get<int>("dims"); i++) axes.value[axes.count++] = i;
  return axes;
}

// The shape of x in front of the normalised axes, and that of those; checks `dims`.
inline std::pair<Shape, Shape> split(const ShapeContext& c, uint32_t x) {
  int64_t dims = c.get<int>("dims");
  c.need(dims >= 1 && dims <= static_cast<int64_t>(c.rank(x)), "dims is %lld; expected 1 to %u, the axes of %s",
         static_cast<long long>(dims), c.rank(x), c.text(x).c_str());
  std::pair<Shape, Shape> parts;
  for (uint32_t i = 0; i < c.rank(x); i++) (i + dims < c.rank(x) ? parts.first : parts.second).push(c.dim(x, i));
  return parts;
}

inline void check_trailing(const ShapeContext& c, uint32_t input, uint32_t x, const Shape& shape) {
  if (!c.has(input)) return;
  c.check_rank(input, shape.rank, shape.rank);
  for (uint32_t i = 0; i < shape.rank; i++) c.check_dim(input, i, shape[i], "the normalised axes of x");
  check_affine(c, input, x);
}

inline Value sum_rows(Value v, const pg_ints& rows) { return rows.count == 0 ? v : sum(v, rows); }

}  // namespace pg
