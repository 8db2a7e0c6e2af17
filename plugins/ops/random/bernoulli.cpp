// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg {
namespace {

PG_OP("bernoulli")
    .category("random")
    .doc("1 with probability p, else 0. A p above 1 counts as 1, one below 0 (and NaN) as 0.")
    .input("p", kFloating, "probabilities in [0, 1], any shape")
    .random()
    .output("y", "shape of p")
    .traits(PG_OP_NO_GRAD)
    .shape(like_input);

}  // namespace
}  // namespace pg
