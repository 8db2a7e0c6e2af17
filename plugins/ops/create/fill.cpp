// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_fill {
namespace {

PG_OP("fill")
    .category("creation")
    .doc("A tensor whose elements all are `value`, converted to the dtype.")
    .role("fill")
    .attr<Dims>("shape", {}, "the shape")
    .required()
    .attr<Dtype>("dtype", 0, "the dtype; float32 when none is given")
    .attr<pg_number>("value", {}, "the number")
    .runtime()
    .output("y", "`shape`")
    .traits(PG_OP_CREATES | PG_OP_NO_GRAD)
    .shape([](ShapeContext& c) { c.out(0).set(dtype_or(c.get<Dtype>("dtype"), PG_F32), Shape(c.get<Dims>("shape"))); });

}  // namespace
}  // namespace pg::schema_fill
