// SPDX-License-Identifier: Apache-2.0
// Shape rules and gradient helpers that several operators share.
#pragma once

#include "perigee/op.hpp"

namespace pg {

// The output has input 0's shape and dtype.
inline void like_input(ShapeContext& c) { c.out(0) = c.in(0); }

// Promotion lifts integers before a FLOAT_RESULT operator; what arrives here must be floating.
inline void check_floating(const ShapeContext& c, uint32_t input) {
  c.need(dtype_class(c.dtype(input)) == PG_M_FLOAT, "%s is %s; expected a floating dtype", c.name(input),
         dtype_name(c.dtype(input)));
}

inline void check_broadcasts_to(const ShapeContext& c, uint32_t input, uint32_t target) {
  Shape shape = broadcast(c.shape(target), c.shape(input));
  bool fits = shape.rank == c.rank(target);
  for (uint32_t i = 0; fits && i < shape.rank; i++) fits = shape[i].may_equal(c.dim(target, i));
  c.need(fits, "%s does not broadcast to %s", c.text(input).c_str(), c.text(target).c_str());
}

// For operators that compute the numbers that they make.
inline void check_computed(const ShapeContext& c, uint32_t dtype) {
  c.need(dtype_class(dtype) != PG_M_FLOAT8, "nothing is computed in %s: make float32 and convert it with x:to(\"%s\")",
         dtype_name(dtype), dtype_name(dtype));
}

inline uint32_t dtype_or(uint32_t dtype, uint32_t otherwise) { return dtype == 0 ? otherwise : dtype; }

// Compositions round after each of their operators: of 16-bit floats they compute in float32.
inline Value widen(Value v) { return v && (v.dtype() == PG_F16 || v.dtype() == PG_BF16) ? cast(v, PG_F32) : v; }

// What flows back through y = relu(...): d where y is above 0.
inline Value relu_grad(Value y, Value d) {
  static constinit OpRef op("relu_grad");
  return Call(d.builder, op).input(y).input(d).emit();
}

// The number of elements that one result of a reduction over `axes` covers; -1 where a symbol is involved.
inline int64_t covered(const pg_tensor& x, const AxisSet& axes) {
  Dim count = 1;
  for (uint32_t i = 0; i < x.rank; i++)
    if (axes.has(i)) count = count * Dim(x.shape[i]);
  return count.symbolic() ? -1 : count.value;
}

// Attribute "axes" of a reduction, checked before; none means all.
inline AxisSet axes_of(const AttrReader& attrs, uint32_t rank) {
  pg_ints list = attrs.get<Axes>("axes");
  AxisSet set;
  for (int64_t i = 0; i < list.count; i++) set.bits |= 1u << wrap_axis(list.value[i], rank);
  if (list.count == 0) set.bits = (1u << rank) - 1;
  for (uint32_t i = 0; i < rank; i++) set.count += set.has(i);
  return set;
}

// A reduction's result (or its cotangent) with the reduced axes back as ones, so that it broadcasts against x. Leading
// axes need not come back.
inline Value restore_axes(Value y, const AxisSet& axes, bool keepdim, uint32_t rank) {
  if (keepdim || axes.count == 0) return y;
  uint32_t leading = 0;
  while (leading < rank && axes.has(leading)) leading++;
  for (uint32_t i = leading, at = 0; i < rank; i++, at++)
    if (axes.has(i)) y = unsqueeze(y, at);
  return y;
}

}  // namespace pg
