// SPDX-License-Identifier: Apache-2.0
#include "../positions.hpp"

namespace pg::schema_spaced {
namespace {

PG_OP("spaced")
    .category("creation")
    .doc(
        "Numbers from first to last, both included, in equal steps: computed in float64 and rounded once. The front "
        "end says how many.")
    .attr<Dims>("count", {}, "number of elements: one dimension")
    .required()
    .internal()
    .attr<Dtype>("dtype", 0, "the dtype; float32 when none is given")
    .attr<double>("first", 0, "the first number")
    .runtime()
    .attr<double>("last", 0, "the last number, where there are two or more")
    .runtime()
    .output("y", "[count]")
    .traits(PG_OP_CREATES | PG_OP_NO_GRAD)
    .shape([](ShapeContext& c) {
      Shape shape(c.get<Dims>("count"));
      if (shape.rank != 1) fail_argument("count must be one dimension");
      check_computed(c, c.get<Dtype>("dtype"));
      c.out(0).set(dtype_or(c.get<Dtype>("dtype"), PG_F32), shape);
    })
    .decompose([](ExpandContext& e) {
      static constinit OpRef numbers("arange", "count", "dtype");
      const pg_ints count = e.get<Dims>("count");
      int64_t n = known(count.value[0]);
      double first = e.get<double>("first"), last = e.get<double>("last");
      double step = n > 1 ? (last - first) / static_cast<double>(n - 1) : 0;
      Value i = Call(e.builder(), numbers).set(0, count).set(1, PG_F64).emit();
      Value y = n > 1 ? where(eq(i, static_cast<double>(n - 1)), last, i * step + first) : i + first;
      e.out(0) = cast(y, dtype_or(e.get<Dtype>("dtype"), PG_F32));
    });

}  // namespace
}  // namespace pg::schema_spaced
