// SPDX-License-Identifier: Apache-2.0
// diagonal, and the two operators that its gradient and writing through it need.
#include <algorithm>

#include "part.hpp"

namespace pg::schema_diagonal {
namespace {

constexpr int64_t kFar = int64_t{1} << 53;  // no matrix reaches there, and numbers do not overflow

// The two axes become one, the last; strides and offset too where x has strides.
Shape diagonal_of(const ShapeContext& c, uint32_t input, int64_t* stride, int64_t* start) {
  const pg_tensor& x = c.in(input);
  c.check_rank(input, 2);
  uint32_t a = c.check_axis("axis1", input), b = c.check_axis("axis2", input);
  c.need(a != b, "axis1 and axis2 are both %u; expected two axes", a + 1);
  int64_t off = std::clamp(c.get<int>("offset"), -kFar, kFar);
  Dim rows = x.shape[a], columns = x.shape[b];
  Dim down = off < 0 ? rows + Dim(off) : rows, right = off > 0 ? columns - Dim(off) : columns;
  Dim length = max(min(down, right), 0);
  Shape shape;
  *start = 0;
  for (uint32_t i = 0; i < x.rank; i++) {
    if (i == a || i == b) continue;
    if (x.stride != nullptr) stride[shape.rank] = x.stride[i];
    shape.push(x.shape[i]);
  }
  if (x.stride != nullptr) {
    stride[shape.rank] = x.stride[a] + x.stride[b];
    if (!length.is(0)) *start = off < 0 ? -off * x.stride[a] : off * x.stride[b];
  }
  shape.push(length);
  return shape;
}

OpBuilder& diagonal_attrs(OpBuilder& op) {
  return op.attr<int>("offset", 0, "which diagonal: 0 the main one, above it positive, below it negative")
      .attr<Axis>("axis1", 0, "axis of the rows")
      .attr<Axis>("axis2", 1, "axis of the columns");
}

constinit PartFamily family{
    .view = OpRef("diagonal"),
    .grad = OpRef("diagonal_grad"),
    .scatter = OpRef("diagonal_scatter"),
    .name = "diagonal",
    .noun = "diagonal",
    .doc = "A diagonal of the matrices that two axes of x make, as the last axis; without a copy.",
    .result = "x without the two axes, and the diagonal behind",
    .attrs = diagonal_attrs,
    .shape = diagonal_of,
};
const bool declared = declare_part(family);

}  // namespace
}  // namespace pg::schema_diagonal
