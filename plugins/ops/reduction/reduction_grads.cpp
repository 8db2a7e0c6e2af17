// SPDX-License-Identifier: Apache-2.0
// What the ways back through amax, amin and prod emit. y and dy broadcast against x: they have ones in place of the
// reduced axes, or leave leading ones out.
#include "reduction.hpp"

namespace pg::schema_reduction_grads {
namespace {

pg_ints reduced(const AttrReader& attrs, Value x) { return axis_list(axes_of(attrs, x.rank())); }

OpBuilder& declare(const char* name, const char* doc, bool with_y) {
  OpBuilder& op = declare_op(name).category("reduction").doc(doc).input("x", kFloating, "[...]");
  if (with_y) op.input("y", kFloating, "broadcasts to x: what was found");
  return op.input("dy", kFloating, "broadcasts to x")
      .attr<Axes>("axes", {}, "axes that were reduced; none means all")
      .output("dx", "shape of x")
      .shape([with_y](ShapeContext& c) {
        c.check_axes("axes", 0);
        for (uint32_t i = 1; i <= (with_y ? 2 : 1); i++) {
          check_broadcasts_to(c, i, 0);
          c.check_same_dtype(i, 0);
        }
        c.out(0) = c.in(0);
      });
}

// d, shared by the elements that are y.
Value shared(const AttrReader& attrs, Value x, Value y, Value d) {
  Value hit = eq(x, y);
  return where(hit, d / sum(cast(hit, x.dtype()), reduced(attrs, x), true), 0.0);
}

[[maybe_unused]] OpBuilder& extreme =
    declare("extreme_grad", "Gradient of amax and amin: dy, shared by the elements that are y.", true)
        .numeric(PG_NUMERIC_KEEP)
        .saves("x", "y", "dy")
        .grad([](GradContext& g) {
          Value x = g.in(0), y = g.in(1), dy = g.in(2);
          if (g.needed(2)) g.din(2) = sum_like(shared(g, x, y, g.dout(0)), dy);
        })
        .decompose([](ExpandContext& e) { e.out(0) = shared(e, e.in(0), e.in(1), e.in(2)); });

// Slopes of a product by its elements, with zeros among them. Q is the product of the others, the numbers that are not
// zero; in their places zeros are 1.
struct Product {
  pg_ints axes;
  Value zero, filled, others, zeros;
  Product(const AttrReader& attrs, Value x) : axes(reduced(attrs, x)) {
    zero = eq(x, 0.0), filled = where(zero, 1.0, x);
    others = reduce<"prod">(filled, axes, true), zeros = sum(zero, axes, true);
  }
  Value when(Value at_zero, Value elsewhere) const { return where(zero, at_zero, elsewhere); }
  // Of the whole by x: Q / x without a zero; with a single one, Q at the zero.
  Value slope() const { return when(where(eq(zeros, 1.0), others, 0.0), where(eq(zeros, 0.0), others, 0.0) / filled); }
  // By x, of the sum of d times those slopes: the products that leave out two elements each.
  Value second(Value d) const {
    Value one = eq(zeros, 1.0), two = eq(zeros, 2.0), share = where(zero, 0.0, d / filled);
    Value rest = sum(share, axes, true), hidden = sum(where(zero, d, 0.0), axes, true);
    Value at_zero = where(one, others * rest, where(two, others * (hidden - d), 0.0));
    Value elsewhere = where(eq(zeros, 0.0), others * (rest - share), where(one, others * hidden, 0.0)) / filled;
    return when(at_zero, elsewhere);
  }
};

[[maybe_unused]] OpBuilder& prod =
    declare("prod_grad", "Gradient of prod: dy times the product of the other elements.", false)
        .numeric(PG_NUMERIC_FLOAT32)
        .saves("x", "dy")
        .grad([](GradContext& g) {
          Value x = g.in(0), dy = g.in(1), d = g.dout(0);
          Product p(g, x);
          if (g.needed(0)) g.din(0) = dy * p.second(d);
          if (g.needed(1)) g.din(1) = sum_like(d * p.slope(), dy);
        })
        .decompose([](ExpandContext& e) { e.out(0) = e.in(1) * Product(e, e.in(0)).slope(); });

}  // namespace
}  // namespace pg::schema_reduction_grads
