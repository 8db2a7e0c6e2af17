// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_dropout_mask {
namespace {

PG_OP("dropout_mask")
    .category("random")
    .doc(
        "Which elements of `like` a dropout keeps: true with probability 1 - p. Element i, in row-major order, is kept "
        "where the float32 uniform of perigee/kernels/philox.hpp at (key[0], key[1], i) is at least p. The same key "
        "gives the same mask.")
    .input("key", kInteger, "[2] int64: seed and offset")
    .input("like", kAnyDtype, "the shape of the mask", PG_INPUT_META)
    .attr<double>("p", 0.5, "probability of dropping, in [0, 1]")
    .runtime()
    .output("keep", "bool, shape of like")
    .traits(PG_OP_NO_GRAD)
    .shape([](ShapeContext& c) {
      c.check_rank(0, 1, 1);
      c.check_dim(0, 0, 2, "a seed and an offset");
      c.need(c.dtype(0) == PG_I64, "key is %s; expected int64", dtype_name(c.dtype(0)));
      c.out(0).set(PG_B8, c.shape(1));
    });

}  // namespace
}  // namespace pg::schema_dropout_mask
