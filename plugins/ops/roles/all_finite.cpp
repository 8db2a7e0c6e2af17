// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_all_finite {
namespace {

PG_OP("all_finite")
    .category("reduction")
    .doc("Whether no element of any tensor is infinite or NaN.")
    .role("all_finite")
    .input("xs", kRealOrBool, "any shapes", PG_INPUT_VARIADIC)
    .output("y", "[] bool")
    .traits(PG_OP_NO_GRAD)
    .shape([](ShapeContext& c) { c.out(0).set(PG_B8, Shape{}); })
    .decompose([](ExpandContext& e) {
      std::vector<Value> xs = e.group(0);
      if (xs.empty()) fail_argument("xs is empty; expected at least one tensor");
      Value y;
      for (Value x : xs) {
        Value finite = reduce<"all">(isfinite(x));
        y = y ? logical_and(y, finite) : finite;
      }
      e.out(0) = y;
    });

}  // namespace
}  // namespace pg::schema_all_finite
