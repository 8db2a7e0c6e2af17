// SPDX-License-Identifier: Apache-2.0
// scatter, scatter_add and scatter_reduce: single elements written along one axis.
#include "../rules.hpp"

namespace pg::schema_scatter {
namespace {

constexpr int32_t kSum = 0, kProd = 1, kMean = 2;  // of the choices of "reduce"; then amax, amin

OpBuilder& declare(const char* name, const char* doc, uint32_t dtypes) {
  return declare_op(name)
      .category("index")
      .doc(doc)
      .input("x", dtypes, "[...]")
      .input("index", kInteger, "as many axes as x, none longer but `axis`: from 0")
      .input("src", dtypes, "dtype of x, shape of index")
      .attr<Axis>("axis", 0, "axis that the indices run along")
      .required()
      .output("y", "shape of x")
      .traits(PG_OP_IN_PLACE)
      .numeric(PG_NUMERIC_WIDEST)
      .shape([](ShapeContext& c) {
        c.check_index(1);
        uint32_t axis = c.check_axis("axis", 0), rank = c.rank(0);
        c.check_rank(1, rank, rank);
        for (uint32_t i = 0; i < rank; i++) {
          Dim have = c.dim(0, i), want = c.dim(1, i);
          bool known = !have.symbolic() && !want.symbolic();
          c.need(i == axis || !known || want.value <= have.value,
                 "%s is larger than %s along axis %u, which is not scattered along", c.text(1).c_str(),
                 c.text(0).c_str(), i + 1);
        }
        c.check_same_shape(2, 1);
        c.check_same_dtype(2, 0);
        c.out(0) = c.in(0);
      });
}

Value scatter(Value x, Value index, Value src, int64_t axis) {
  static constinit OpRef op("scatter", "axis");
  return Call(x.builder, op).input(x).input(index).input(src).set(0, axis).emit();
}
Value scatter_add(Value x, Value index, Value src, int64_t axis) {
  static constinit OpRef op("scatter_add", "axis");
  return Call(x.builder, op).input(x).input(index).input(src).set(0, axis).emit();
}

// What a reduction's gradient is written in.
struct Reduction {
  explicit Reduction(GradContext& g)
      : g(g),
        x(g.in(0)),
        index(g.in(1)),
        src(g.in(2)),
        y(g.out(0)),
        dy(g.dout(0)),
        axis(g.get<Axis>("axis")),
        with_self(g.get<bool>("include_self")) {}

  Value at_index(Value v) const { return gather(v, index, axis); }
  // v, with zeros at the elements that the index names unless x takes part there.
  Value of_self(Value v) const { return with_self ? v : scatter(v, index, zeros_like(src), axis); }

  void sum() const {
    if (g.needed(0)) g.din(0) = of_self(dy);
    if (g.needed(2)) g.din(2) = at_index(dy);
  }
  void mean() const {
    Value ones = ones_like(src), start = of_self(ones_like(x));
    Value count = maximum(scatter_add(start, index, ones, axis), 1.0), part = dy / count;
    if (g.needed(0)) g.din(0) = of_self(part);
    if (g.needed(2)) g.din(2) = at_index(part);
  }
  // The product of the others: y / v where no factor is zero; with one zero among them only that one has a slope, the
  // product of the rest.
  void prod() const {
    static constinit OpRef op("scatter_reduce", "axis", "reduce", "include_self");
    Value no_x = of_self(cast(eq(x, 0.0), x.dtype())), no_src = cast(eq(src, 0.0), x.dtype());
    Value zeros = scatter_add(no_x, index, no_src, axis);
    Value full_x = where(eq(x, 0.0), 1.0, x), full_src = where(eq(src, 0.0), 1.0, src);
    Value rest = Call(x.builder, op)
                     .input(full_x)
                     .input(index)
                     .input(full_src)
                     .set(0, axis)
                     .set(1, kProd)
                     .set(2, with_self)
                     .emit();
    Value without = where(eq(zeros, 0.0), dy * rest, 0.0), alone = where(eq(zeros, 1.0), dy * rest, 0.0);
    if (g.needed(0)) g.din(0) = of_self(where(eq(x, 0.0), alone, without / full_x));
    if (g.needed(2)) g.din(2) = where(eq(src, 0.0), at_index(alone), at_index(without) / full_src);
  }
  // Equal extremes share.
  void extreme() const {
    Value hit_x = of_self(cast(eq(x, y), x.dtype())), hit_src = cast(eq(src, at_index(y)), x.dtype());
    Value share = dy / maximum(scatter_add(hit_x, index, hit_src, axis), 1.0);
    // An element that no index names is its own extreme; of_self leaves it alone.
    if (g.needed(0)) g.din(0) = hit_x * share;
    if (g.needed(2)) g.din(2) = hit_src * at_index(share);
  }

  GradContext& g;
  Value x, index, src, y, dy;
  int64_t axis;
  bool with_self;
};

const bool declared = [] {
  declare("scatter",
          "x with y[index[i][j]...][j]... = src[i][j]... for axis 1, and likewise for the others; of equal places the "
          "last one stays. An index out of range is an error that names it, and nothing is written.",
          kStoredReal)
      .saves("index")
      .grad([](GradContext& g) {
        int64_t axis = g.get<Axis>("axis");
        if (g.needed(0)) g.din(0) = scatter(g.dout(0), g.in(1), zeros_like(g.in(2)), axis);
        if (g.needed(2)) g.din(2) = gather(g.dout(0), g.in(1), axis);
      });

  declare("scatter_add",
          "x with y[index[i][j]...][j]... += src[i][j]... for axis 1, and likewise for the others; equal places add "
          "up, in order. An index out of range is an error that names it, and nothing is written.",
          kRealOrBool)
      .saves("index")
      .grad([](GradContext& g) {
        if (g.needed(0)) g.din(0) = g.dout(0);
        if (g.needed(2)) g.din(2) = gather(g.dout(0), g.in(1), g.get<Axis>("axis"));
      });

  declare("scatter_reduce",
          "x with each element that the index names reduced with the elements of src which `scatter` would write "
          "there. The mean of integers is rounded down. An index out of range is an error that names it.",
          kRealOrBool)
      .choice("reduce", {"sum", "prod", "mean", "amax", "amin"}, kSum, "how")
      .required()
      .attr<bool>("include_self", true, "whether x's own elements take part where src's come")
      .saves("x", "index", "src", "y")
      .grad([](GradContext& g) {
        Reduction r(g);
        switch (g.get<Choice>("reduce")) {
          case kSum: return r.sum();
          case kProd: return r.prod();
          case kMean: return r.mean();
          default: return r.extreme();
        }
      });
  return true;
}();

}  // namespace
}  // namespace pg::schema_scatter
