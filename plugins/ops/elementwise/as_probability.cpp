// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_as_probability {
namespace {

// Not PG_OP_ELEMENTWISE: what depends on values may not be fused into a kernel that has no way to fail.
PG_OP("as_probability")
    .category("elementwise")
    .doc("p as it is, where all of it lies in [0, 1]; else an error that names the first element which does not.")
    .input("p", kFloating, "any shape")
    .output("y", "shape of p")
    .shape(like_input)
    .grad([](GradContext& g) { g.din(0) = g.dout(0); });

}  // namespace
}  // namespace pg::schema_as_probability
