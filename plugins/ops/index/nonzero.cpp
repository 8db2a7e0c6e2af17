// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_nonzero {
namespace {

PG_OP("nonzero")
    .category("index")
    .doc("Positions of the elements that are not zero, in row-major order, from 0; a column an axis.")
    .input("x", kRealOrBool, "[...]")
    .output("y", "int64 [n, rank of x]", PG_OUTPUT_DYNAMIC)
    .traits(PG_OP_NO_GRAD)
    .shape([](ShapeContext& c) {
      c.out(0).set(PG_I64, Shape{c.shape(0).count(), static_cast<int64_t>(c.rank(0))});
    });

}  // namespace
}  // namespace pg::schema_nonzero
