// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_bernoulli {
namespace {

PG_OP("bernoulli")
    .category("random")
    .doc("1 with probability p, else 0. A p outside of [0, 1], or NaN, is an error that names the first one.")
    .input("p", kFloating, "probabilities in [0, 1], any shape")
    .random()
    .output("y", "shape of p")
    .traits(PG_OP_NO_GRAD)
    .shape(like_input);

}  // namespace
}  // namespace pg::schema_bernoulli
