// SPDX-License-Identifier: Apache-2.0
#include "matrix.hpp"

namespace pg {
namespace {

PG_OP("linear")
    .category("matrix")
    .doc("x times the transposed weight, plus bias: the affine map of a fully connected layer.")
    .input("x", kReal, "[..., in]", PG_INPUT_PROMOTE)
    .input("weight", kReal, "[out, in]", PG_INPUT_PROMOTE)
    .input("bias", kReal, "[out]", PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL)
    .output("y", "[..., out]")
    .numeric(PG_NUMERIC_LOWER)
    .shape([](ShapeContext& c) {
      c.check_rank(0, 1);
      c.check_rank(1, 2, 2);
      c.check_same_dtype(1, 0);
      Shape shape = c.shape(0);
      c.check_dim(1, 1, shape.dims[shape.rank - 1], "the last axis of x");
      shape.dims[shape.rank - 1] = c.dim(1, 0).value;
      if (c.has(2)) {
        c.check_rank(2, 1, 1);
        c.check_same_dtype(2, 0);
        c.check_dim(2, 0, c.dim(1, 0), "the first axis of weight");
      }
      c.out(0).set(c.dtype(0), shape);
    })
    .saves("x", "weight")
    .grad([](GradContext& g) {
      Value d = g.dout(0);
      if (g.needed(0)) g.din(0) = matmul(d, g.in(1));
      if (g.needed(1)) g.din(1) = matmul(flatten_rows(d), flatten_rows(g.in(0)), true, false);
      if (g.needed(2)) g.din(2) = sum_like(d, g.in(2));
    })
    .decompose([](ExpandContext& e) {
      Value y = matmul(e.in(0), e.in(1), false, true);
      e.out(0) = e.has(2) ? y + e.in(2) : y;
    });

}  // namespace
}  // namespace pg
