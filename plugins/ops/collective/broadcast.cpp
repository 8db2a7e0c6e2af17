// SPDX-License-Identifier: Apache-2.0
// broadcast and reduce, each the other's gradient.
#include "shared.hpp"

namespace pg::schema_broadcast {
namespace {

using namespace collective;

Value call_with_root(GradContext& g, const OpRef& op, Value x) {
  return Call(g.builder(), op)
      .input(x)
      .set(0, g.get<int>("root"))
      .set(1, g.get<int>("group"))
      .set(2, g.get<int>("ranks"))
      .emit();
}

PG_OP("broadcast")
    .category("collective")
    .role("broadcast")
    .doc("Every process of a group gets the x of one of them. Gradient: reduce, so that it arrives at the root alone.")
    .input("x", kAnyDtype, "equal shapes on all ranks; read at the root")
    .attr<int>("root", 0, "the rank whose x it is")
    .attr<int>("group", 0, "which group of processes; 0: this one alone")
    .attr<int>("ranks", 1, "how many it has")
    .output("y", "shape of x")
    .ordered()
    .shape([](ShapeContext& c) {
      check_ranks(c);
      check_root(c);
      c.out(0) = c.in(0);
    })
    .grad([](GradContext& g) {
      static constinit OpRef op("reduce", "root", "group", "ranks");
      g.din(0) = call_with_root(g, op, g.dout(0));
    })
    .decompose([](ExpandContext& e) { e.out(0) = clone(e.in(0)); });

PG_OP("reduce")
    .category("collective")
    .role("reduce")
    .doc(
        "One process of a group gets the sum (mean, largest, smallest) of the x of all, the others zeros. Gradient of "
        "sum and mean: broadcast.")
    .input("x", kReal, "equal shapes on all ranks")
    .choice("op", {"sum", "mean", "max", "min"}, kSum, "the reduction")
    .attr<int>("root", 0, "the rank that gets it")
    .attr<int>("group", 0, "which group of processes; 0: this one alone")
    .attr<int>("ranks", 1, "how many it has")
    .output("y", "shape of x")
    .ordered()
    .shape([](ShapeContext& c) {
      check_ranks(c);
      check_root(c);
      check_reduction(c);
      c.out(0) = c.in(0);
    })
    .grad([](GradContext& g) {
      static constinit OpRef op("broadcast", "root", "group", "ranks");
      g.din(0) = share(g, call_with_root(g, op, g.dout(0)));
    })
    .decompose([](ExpandContext& e) { e.out(0) = clone(e.in(0)); });

}  // namespace
}  // namespace pg::schema_broadcast
