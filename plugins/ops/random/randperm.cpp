// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_randperm {
namespace {

PG_OP("randperm")
    .category("random")
    .doc("The numbers 0 to n - 1 in random order.")
    .attr<int>("n", 0, "how many")
    .required()
    .attr<Dtype>("dtype", 0, "the dtype; int64 when none is given")
    .random()
    .output("y", "[n]")
    .traits(PG_OP_CREATES | PG_OP_NO_GRAD)
    .shape([](ShapeContext& c) {
      int64_t n = c.get<int>("n");
      c.need(n >= 0, "n is %lld; expected at least 0", static_cast<long long>(n));
      c.out(0).set(dtype_or(c.get<Dtype>("dtype"), PG_I64), Shape{n});
    });

}  // namespace
}  // namespace pg::schema_randperm
