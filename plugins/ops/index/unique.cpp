// SPDX-License-Identifier: Apache-2.0
// unique_rows and searchsorted.
#include "../rules.hpp"

namespace pg::schema_unique {
namespace {

PG_OP("unique_rows")
    .category("index")
    .doc(
        "Which rows of x are different: the position of the first of each kind, the kinds in rising order; the kind of "
        "every row; and how many rows are of each. NaN equals nothing.")
    .input("x", kRealOrBool, "[n] or [n, m]")
    .attr<bool>("consecutive", false, "only rows that follow each other count as equal; the kinds as they come")
    .output("first", "int64 [k], from 0", PG_OUTPUT_DYNAMIC)
    .output("inverse", "int64 [n], from 0")
    .output("counts", "int64 [k]", PG_OUTPUT_DYNAMIC)
    .traits(PG_OP_NO_GRAD)
    .shape([](ShapeContext& c) {
      c.check_rank(0, 1, 2);
      Shape shape{c.dim(0, 0)};
      for (uint32_t i = 0; i < 3; i++) c.out(i).set(PG_I64, shape);
    });

PG_OP("searchsorted")
    .category("index")
    .doc(
        "How many elements of a sorted row come before each value: those below it, or with `right` those not above it. "
        "NaN counts as larger than all numbers.")
    .input("sorted", kRealOrBool, "[n] for all values, or [..., n]: rows in rising order", PG_INPUT_PROMOTE)
    .input("values", kRealOrBool, "[..., m] with the other axes of sorted, or any shape for one row", PG_INPUT_PROMOTE)
    .attr<bool>("right", false, "behind equal elements; otherwise before them")
    .output("y", "int64, shape of values")
    .traits(PG_OP_NO_GRAD)
    .shape([](ShapeContext& c) {
      c.check_rank(0, 1);
      if (c.rank(0) > 1) {
        bool fits = c.rank(1) == c.rank(0);
        for (uint32_t i = 0; fits && i + 1 < c.rank(0); i++) fits = c.dim(0, i).may_equal(c.dim(1, i));
        c.need(fits, "%s and %s must agree in all axes but the last", c.text(0).c_str(), c.text(1).c_str());
      }
      c.out(0).set(PG_I64, c.shape(1));
    });

}  // namespace
}  // namespace pg::schema_unique
