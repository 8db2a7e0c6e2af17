// SPDX-License-Identifier: Apache-2.0
// The operator: what it is. One file says its shape rule and its gradient, for every device.
#include <perigee/functions.hpp>
#include <perigee/op.hpp>

namespace {

using namespace pg;

// snake(x) = x + sin(a x)^2 / a (Ziyin, Hartwig, Ueda 2020, "Neural networks fail to learn periodic functions and how
// to fix it"), whose derivatives are 1 + sin(2 a x) by x, and (x sin(2 a x) - sin(a x)^2 / a) / a by a.
PG_OP("my_snake")
    .category("neural")
    .doc("x + sin(a x)^2 / a, with a number a for each place of the last axis.")
    .input("x", kFloating, "[..., n]", PG_INPUT_PROMOTE)
    .input("a", kFloating, "[n], not 0", PG_INPUT_PROMOTE)
    .output("y", "[..., n]")
    .shape([](ShapeContext& c) {
      c.check_rank(0, 1);
      c.check_rank(1, 1, 1);
      c.check_dim(1, 0, c.dim(0, c.rank(0) - 1), "the size of the last axis of x");
      c.out(0) = c.in(0);
    })
    .saves("x", "a")
    .grad([](GradContext& g) {
      Value x = g.in(0), a = g.in(1), dy = g.dout(0), twice = sin(x * a * 2);
      if (g.needed(0)) g.din(0) = dy * (twice + 1);
      if (g.needed(1)) g.din(1) = sum_like(dy * (x * twice - square(sin(x * a)) / a) / a, a);
    });

}  // namespace
