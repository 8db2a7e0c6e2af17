// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_dropout {
namespace {

PG_OP("dropout")
    .category("neural")
    .doc(
        "In training each element is kept with probability 1 - p and divided by 1 - p, else 0 (Srivastava et al. "
        "2014); "
        "otherwise x. Element i, in row-major order, is kept where the float32 uniform of perigee/kernels/philox.hpp "
        "at "
        "(seed, offset, i) is at least p: the same on every device.")
    .input("x", kFloating, "any shape")
    .attr<double>("p", 0.5, "probability of dropping, in [0, 1]")
    .runtime()
    .attr<bool>("training", true, "drop elements")
    .random()
    .output("y", "shape of x")
    .hidden("mask", "bool, shape of x: which elements were kept; all outside of training")
    .shape([](ShapeContext& c) {
      c.out(0) = c.in(0);
      c.out(1).set(PG_B8, c.shape(0));
    })
    .saves("mask")
    .grad([](GradContext& g) {
      double keep = 1 - g.get<double>("p");
      if (!g.get<bool>("training"))
        g.din(0) = g.dout(0);
      else
        g.din(0) = where(g.out(1), g.dout(0) * (keep > 0 ? 1 / keep : 0), 0.0);
    });

}  // namespace
}  // namespace pg::schema_dropout
