// SPDX-License-Identifier: Apache-2.0
// An elementwise operator without a kernel: its scalar expression is one.
#include <perigee/functions.hpp>
#include <perigee/op.hpp>

namespace {

using namespace pg;

PG_OP("my_softcap")
    .category("elementwise")
    .doc("cap * tanh(x / cap): about x where x is small, and never farther from 0 than cap.")
    .input("x", kFloating, "any shape")
    .attr<double>("cap", 30, "the limit; not 0")
    .runtime()
    .output("y", "shape of x")
    .traits(PG_OP_ELEMENTWISE | PG_OP_IN_PLACE)
    .shape([](ShapeContext& c) { c.out(0) = c.in(0); })
    .expression("Mul(cap, Tanh(Div(x, cap)))")
    .saves("y")
    .grad([](GradContext& g) { g.din(0) = g.dout(0) * (1.0 - square(g.out(0) / g.get<double>("cap"))); });

}  // namespace
