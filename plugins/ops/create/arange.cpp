// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_arange {
namespace {

PG_OP("arange")
    .category("creation")
    .doc(
        "start, start + step, ... : element i is start + i * step, computed in float64 (int64 for integers). The front "
        "end counts the elements: max(0, ceil((stop - start) / step)).")
    .attr<Dims>("count", {}, "number of elements: one dimension, a symbol in graphs")
    .required()
    .internal()
    .attr<Dtype>("dtype", 0, "the dtype; float32 when none is given")
    .attr<double>("start", 0, "the first number")
    .runtime()
    .attr<double>("stop", 0, "the number before which it ends")
    .runtime()
    .attr<double>("step", 1, "the difference of two neighbours")
    .runtime()
    .output("y", "[count]")
    .traits(PG_OP_CREATES | PG_OP_NO_GRAD)
    .shape([](ShapeContext& c) {
      Shape shape(c.get<Dims>("count"));
      if (shape.rank != 1) fail_argument("count must be one dimension");
      check_computed(c, c.get<Dtype>("dtype"));
      c.out(0).set(dtype_or(c.get<Dtype>("dtype"), PG_F32), shape);
    });

}  // namespace
}  // namespace pg::schema_arange
