// SPDX-License-Identifier: Apache-2.0
// tril and triu.
#include "../positions.hpp"

namespace pg::schema_triangle {
namespace {

struct Triangle {
  OpRef op;
  const char *name, *doc;
  Value (*kept)(Value apart, double diagonal);  // of column minus row
};

constinit Triangle lower{OpRef("tril"), "tril",
                         "The lower triangle of matrices: zeros above diagonal number `diagonal`.",
                         [](Value apart, double diagonal) { return le(apart, diagonal); }};
constinit Triangle upper{OpRef("triu"), "triu",
                         "The upper triangle of matrices: zeros below diagonal number `diagonal`.",
                         [](Value apart, double diagonal) { return ge(apart, diagonal); }};

bool declare(const Triangle& t) {
  declare_op(t.name)
      .category("index")
      .doc(t.doc)
      .input("x", kStored, "[..., n, m]")
      .attr<int>("diagonal", 0, "0 is the main diagonal, those above it are positive, those below it negative")
      .runtime()
      .output("y", "shape of x")
      .traits(PG_OP_IN_PLACE)
      .shape([](ShapeContext& c) {
        c.check_rank(0, 2);
        c.out(0) = c.in(0);
      })
      .grad([&t](GradContext& g) { g.din(0) = g.call(t.op, g.dout(0)); })
      .decompose([&t](ExpandContext& e) {
        Value x = e.in(0);
        Value rows = positions(x, x.dim(x.rank() - 2)), columns = positions(x, x.dim(x.rank() - 1));
        Value kept = t.kept(columns - unsqueeze(rows, 1), static_cast<double>(e.get<int>("diagonal")));
        e.out(0) = x.dtype() == PG_B8 ? logical_and(kept, x) : where(kept, x, 0.0);
      });
  return true;
}
const bool declared = declare(lower) && declare(upper);

}  // namespace
}  // namespace pg::schema_triangle
