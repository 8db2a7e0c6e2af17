// SPDX-License-Identifier: Apache-2.0
#include "matrix.hpp"

namespace pg::schema_matmul {
namespace {

struct Operand {
  Dim rows, columns;  // as multiplied, after the transposition
  Shape batch;
};

// A 1-D operand counts as a row on the left and as a column on the right; the extra axis is removed from the result.
Operand operand(const ShapeContext& c, uint32_t input, bool transposed) {
  c.check_rank(input, 1);
  Shape shape = c.shape(input);
  if (shape.rank == 1) {
    Dim size = shape.dims[0];
    return input == 0 ? Operand{1, size, {}} : Operand{size, 1, {}};
  }
  Dim rows = shape.dims[shape.rank - 2], columns = shape.dims[shape.rank - 1];
  shape.rank -= 2;
  return transposed ? Operand{columns, rows, shape} : Operand{rows, columns, shape};
}

void infer(ShapeContext& c) {
  c.check_same_dtype(1, 0);
  Operand x = operand(c, 0, c.get<bool>("transpose_x")), y = operand(c, 1, c.get<bool>("transpose_y"));
  c.need(x.columns.may_equal(y.rows), "%s and %s do not fit: %lld columns against %lld rows", c.text(0).c_str(),
         c.text(1).c_str(), static_cast<long long>(x.columns.value), static_cast<long long>(y.rows.value));
  Shape shape = broadcast(x.batch, y.batch);
  if (c.rank(0) > 1) shape.push(x.rows);
  if (c.rank(1) > 1) shape.push(y.columns);
  c.out(0).set(c.dtype(0), shape);
}

// With X and Y as multiplied: dX = dZ Y', dY = X' dZ; a transposed operand's gradient is the transpose of that.
void differentiate(GradContext& g) {
  Value x = g.in(0), y = g.in(1), d = g.dout(0);
  bool tx = g.get<bool>("transpose_x") && x.rank() > 1, ty = g.get<bool>("transpose_y") && y.rank() > 1;
  if (x.rank() > 2 && y.rank() == 2 && !tx) {  // one flat product instead of a batch of them and a sum
    Value rows = flatten_rows(x), drows = flatten_rows(d);
    if (g.needed(0)) g.din(0) = matmul(d, y, false, !ty);
    if (g.needed(1)) g.din(1) = ty ? matmul(drows, rows, true, false) : matmul(rows, drows, true, false);
    return;
  }
  Value x2 = x, y2 = y;
  if (y.rank() == 1) {
    y2 = unsqueeze(y, 1);
    d = unsqueeze(d, d.rank());
  }
  if (x.rank() == 1) {
    x2 = unsqueeze(x, 0);
    d = unsqueeze(d, d.rank() - 1);
  }
  if (g.needed(0)) {
    Value dx = tx ? matmul(y2, d, ty, true) : matmul(d, y2, false, !ty);
    g.din(0) = reshape_like(sum_like(dx, x2), x);
  }
  if (g.needed(1)) {
    Value dy = ty ? matmul(d, x2, true, tx) : matmul(x2, d, !tx, false);
    g.din(1) = reshape_like(sum_like(dy, y2), y);
  }
}

PG_OP("matmul")
    .category("matrix")
    .doc(
        "Matrix product of the last two axes; leading axes broadcast. A 1-D x is a row, a 1-D y a column, and that "
        "axis "
        "is missing in the result.")
    .input("x", kReal, "[..., m, k] or [k]", PG_INPUT_PROMOTE)
    .input("y", kReal, "[..., k, n] or [k]", PG_INPUT_PROMOTE)
    .attr<bool>("transpose_x", false, "x is given as [..., k, m]")
    .attr<bool>("transpose_y", false, "y is given as [..., n, k]")
    .output("z", "[..., m, n]")
    .numeric(PG_NUMERIC_LOWER)
    .shape(infer)
    .saves("x", "y")
    .grad(differentiate);

}  // namespace
}  // namespace pg::schema_matmul
