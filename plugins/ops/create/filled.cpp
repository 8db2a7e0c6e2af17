// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_filled {
namespace {

PG_OP("filled")
    .category("creation")
    .doc("x with `value` in place of every element, converted to its dtype. The in-place form is what fill_ does.")
    .input("x", kStored, "any shape; only described", PG_INPUT_META)
    .attr<pg_number>("value", {}, "the number")
    .required()
    .runtime()
    .output("y", "shape of x")
    .traits(PG_OP_IN_PLACE)
    .shape(like_input)
    .grad([](GradContext&) {})  // nothing of x is left
    .decompose([](ExpandContext& e) {
      static constinit OpRef fill("fill", "shape", "dtype", "value"), move("transfer", "device");
      Value x = e.in(0);
      pg_ints shape{};
      shape.count = x.rank();
      for (uint32_t i = 0; i < x.rank(); i++) shape.value[i] = x.dim(i);
      Value y = Call(e.builder(), fill).set(0, shape).set(1, x.dtype()).set(2, e.get<pg_number>("value")).emit();
      if (y.device() != x.device()) y = Call(e.builder(), move).input(y).set(0, x.device()).emit();
      e.out(0) = y;
    });

}  // namespace
}  // namespace pg::schema_filled
