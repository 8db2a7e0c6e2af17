// SPDX-License-Identifier: Apache-2.0
// One plugin in two versions, for processes of which one has the other.
#include <perigee/op.hpp>

namespace {

PG_OP("versioned_same")
    .category("elementwise")
    .doc("x.")
    .input("x", pg::kFloating, "any shape")
    .output("y", "shape of x")
    .traits(PG_OP_ELEMENTWISE)
    .shape([](pg::ShapeContext& c) { c.out(0) = c.in(0); })
    .expression("x")
    .grad([](pg::GradContext& g) { g.din(0) = g.dout(0); });

}  // namespace

using Versioned = pg::Provides<pg::OpTable>;
PG_PLUGIN(Versioned, "versioned", VERSION, "ops");
