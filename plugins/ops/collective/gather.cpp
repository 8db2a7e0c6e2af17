// SPDX-License-Identifier: Apache-2.0
// all_gather and reduce_scatter, each the other's gradient.
#include "shared.hpp"

namespace pg::schema_gather {
namespace {

using namespace collective;

PG_OP("all_gather")
    .category("collective")
    .role("all_gather")
    .doc(
        "The x of all processes of a group, behind each other along the first axis in the order of ranks; of 0-dim "
        "ones a vector. Gradient: reduce_scatter.")
    .input("x", kAnyDtype, "equal shapes on all ranks")
    .attr<int>("group", 0, "which group of processes; 0: this one alone")
    .attr<int>("ranks", 1, "how many it has")
    .output("y", "[ranks * n, ...]")
    .ordered()
    .shape([](ShapeContext& c) {
      const int64_t ranks = check_ranks(c);
      Shape shape = c.shape(0);
      if (c.rank(0) == 0) {
        shape.push(Dim(ranks));
      } else {
        shape.dims[0] = (shape[0] * Dim(ranks)).value;
      }
      c.out(0).set(c.dtype(0), shape);
    })
    .grad([](GradContext& g) {
      static constinit OpRef op("reduce_scatter", "group", "ranks");
      Value dx = Call(g.builder(), op).input(g.dout(0)).set(0, g.get<int>("group")).set(1, g.get<int>("ranks")).emit();
      g.din(0) = reshape_like(dx, g.in(0));
    })
    .decompose([](ExpandContext& e) {
      const Value x = e.in(0);
      e.out(0) = clone(x.rank() == 0 ? unsqueeze(x, 0) : x);
    });

PG_OP("reduce_scatter")
    .category("collective")
    .role("reduce_scatter")
    .doc(
        "The sum (mean, largest, smallest) of the x of all processes of a group, of which each gets its block of the "
        "first axis: rank 0 the first. Gradient of sum and mean: all_gather.")
    .input("x", kReal, "[ranks * n, ...], equal shapes on all ranks")
    .choice("op", {"sum", "mean", "max", "min"}, kSum, "the reduction")
    .attr<int>("group", 0, "which group of processes; 0: this one alone")
    .attr<int>("ranks", 1, "how many it has")
    .output("y", "[n, ...]")
    .ordered()
    .shape([](ShapeContext& c) {
      const int64_t ranks = check_ranks(c);
      check_reduction(c);
      Shape shape = c.shape(0);
      shape.dims[0] = block_of(c, ranks).value;
      c.out(0).set(c.dtype(0), shape);
    })
    .grad([](GradContext& g) {
      static constinit OpRef op("all_gather", "group", "ranks");
      g.din(0) = Call(g.builder(), op)
                     .input(share(g, g.dout(0)))
                     .set(0, g.get<int>("group"))
                     .set(1, g.get<int>("ranks"))
                     .emit();
    })
    .decompose([](ExpandContext& e) { e.out(0) = clone(e.in(0)); });

PG_OP("all_to_all")
    .category("collective")
    .role("all_to_all")
    .doc(
        "The first axis is in as many blocks as a group has processes: block k of x goes to rank k, and block k of y "
        "came from there. Gradient: the same.")
    .input("x", kAnyDtype, "[ranks * n, ...], equal shapes on all ranks")
    .attr<int>("group", 0, "which group of processes; 0: this one alone")
    .attr<int>("ranks", 1, "how many it has")
    .output("y", "shape of x")
    .ordered()
    .shape([](ShapeContext& c) {
      block_of(c, check_ranks(c));
      c.out(0) = c.in(0);
    })
    .grad([](GradContext& g) {
      static constinit OpRef op("all_to_all", "group", "ranks");
      g.din(0) = Call(g.builder(), op).input(g.dout(0)).set(0, g.get<int>("group")).set(1, g.get<int>("ranks")).emit();
    })
    .decompose([](ExpandContext& e) { e.out(0) = clone(e.in(0)); });

}  // namespace
}  // namespace pg::schema_gather
