// SPDX-License-Identifier: Apache-2.0
// What the reductions over a set of axes share.
#pragma once

#include <algorithm>

#include "../rules.hpp"

namespace pg {

// shape without (or with ones at) the reduced axes.
inline Shape reduced_shape(const Shape& shape, const AxisSet& axes, bool keepdim) {
  Shape out;
  for (uint32_t i = 0; i < shape.rank; i++) {
    if (!axes.has(i)) out.push(shape[i]);
    if (axes.has(i) && keepdim) out.push(1);
  }
  return out;
}

inline OpBuilder& declare_reduction(const char* name, const char* doc, uint32_t dtypes, uint32_t flags = 0) {
  return declare_op(name)
      .category("reduction")
      .doc(doc)
      .input("x", dtypes, "[...]", flags)
      .attr<Axes>("axes", {}, "axes to reduce; none means all")
      .attr<bool>("keepdim", false, "keep the reduced axes, with size 1")
      .output("y", "x without the reduced axes")
      .traits(PG_OP_REDUCTION);
}

// v / (number of reduced elements - correction): the number is known unless a symbol is involved; then it is counted.
inline Value divide_by_count(Value v, Value x, const AxisSet& axes, int64_t correction) {
  int64_t count = covered(x.meta(), axes);
  if (count >= 0) return v / static_cast<double>(std::max<int64_t>(count - correction, 0));
  Value counted = sum(ones_like(x), axis_list(axes), true);
  return v / (correction == 0 ? counted : maximum(counted - static_cast<double>(correction), 0.0));
}

}  // namespace pg
