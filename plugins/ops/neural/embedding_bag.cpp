// SPDX-License-Identifier: Apache-2.0
// embedding_bag: sums and means of rows, with the gradients by its table and its weights. embedding_bag_max: their
// largest values.
#include "embedding_bag.hpp"

namespace pg::schema_embedding_bag {
namespace {

constexpr char kIndex[] = "[B, L], or [N] with offsets: from 0";

OpBuilder& offsets_input(OpBuilder& op) {
  return op.input("offsets", kInteger, "[B]: where in index each bag begins, from 0", PG_INPUT_OPTIONAL);
}
OpBuilder& weights_input(OpBuilder& op) {
  return op.input("per_sample_weights", kFloating, "shape of index: what the rows are multiplied by",
                  PG_INPUT_OPTIONAL | PG_INPUT_PROMOTE);
}
OpBuilder& bag_attrs(OpBuilder& op) {
  return op.attr<bool>("include_last_offset", false, "offsets have one number more, the number of indices")
      .attr<int>("padding_idx", -1, "this index does not count, from 0; -1 for none");
}
OpBuilder& mode_attr(OpBuilder& op) { return op.choice("mode", {"sum", "mean"}, 0, "what becomes of a bag's rows"); }

// Checks what bags are made of, by position; their number. `weights` UINT32_MAX: the operator has none.
Dim check_bags(const ShapeContext& c, uint32_t table, uint32_t index, uint32_t offsets, uint32_t weights = UINT32_MAX) {
  c.check_rank(table, 2, 2);
  c.check_index(index);
  bool whole = !c.has(offsets);
  c.check_rank(index, whole ? 2 : 1, whole ? 2 : 1);
  int64_t padding = c.get<int>("padding_idx");
  Dim rows = c.dim(table, 0);
  c.need(padding >= -1 && (rows.symbolic() || padding < rows.value),
         "padding_idx %lld is out of range for %s; expected 0..%lld, or -1 for none", static_cast<long long>(padding),
         c.text(table).c_str(), static_cast<long long>(rows.value - 1));
  if (weights != UINT32_MAX && c.has(weights)) {
    c.check_same_shape(weights, index);
    c.check_same_dtype(weights, table);
  }
  if (whole) return c.dim(index, 0);
  c.check_rank(offsets, 1, 1);
  c.check_index(offsets);
  bool last = c.get<bool>("include_last_offset");
  c.need(!last || !c.dim(offsets, 0).is(0), "%s has no last offset", c.text(offsets).c_str());
  return c.dim(offsets, 0) - Dim(last ? 1 : 0);
}
void check_flow(const ShapeContext& c, Dim bags, uint32_t table) {
  c.check_rank(0, 2, 2);
  c.check_dim(0, 0, bags, "the number of bags");
  c.check_dim(0, 1, c.dim(table, 1), "the width of the table");
}

Value emit_grad(ValueContext& c, Value dy, Value index, Value offsets, Value weights, Value table) {
  static constinit OpRef op("embedding_bag_grad");
  return c.call(op, dy, index, offsets, weights, table);
}
Value emit_grad_weights(ValueContext& c, Value dy, Value table, Value index, Value offsets) {
  static constinit OpRef op("embedding_bag_grad_weights");
  return c.call(op, dy, table, index, offsets);
}
Value emit_bags(ValueContext& c, Value table, Value index, Value offsets, Value weights) {
  static constinit OpRef op("embedding_bag");
  return c.call(op, table, index, offsets, weights);
}

void declare_sums() {
  OpBuilder& bag = declare_op("embedding_bag")
                       .category("neural")
                       .doc(
                           "Rows of weight by index, added up or averaged, a bag at a time; 0 for a bag of none. An "
                           "index out of range is an error that names it, as are offsets that fall.")
                       .input("weight", kFloating, "[V, D]", PG_INPUT_PROMOTE)
                       .input("index", kInteger, kIndex);
  mode_attr(bag_attrs(weights_input(offsets_input(bag))))
      .output("y", "[B, D]")
      .shape([](ShapeContext& c) {
        Dim bags = check_bags(c, 0, 1, 2, 3);
        if (c.has(3)) c.need(c.get<Choice>("mode") == 0, "%s is for mode sum", c.text(3).c_str());
        c.out(0).set(c.dtype(0), Shape{bags, c.dim(0, 1)});
      })
      .saves("weight", "index", "offsets", "per_sample_weights")
      .grad([](GradContext& g) {
        if (g.needed(0)) g.din(0) = emit_grad(g, g.dout(0), g.in(1), g.in(2), g.in(3), g.in(0));
        if (g.needed(3)) g.din(3) = emit_grad_weights(g, g.dout(0), g.in(0), g.in(1), g.in(2));
      })
      .decompose([](ExpandContext& e) {
        Bags bags(e, e.in(1), e.in(2));
        Value rows = bags.pick(e.in(0), e.in(3));
        Value y = bags.total(rows);
        if (e.get<Choice>("mode") == 1) y = y / unsqueeze(bags.count(y.dtype()), 1);
        e.out(0) = cast(y, e.in(0).dtype());
      });

  OpBuilder& grad = declare_op("embedding_bag_grad")
                        .category("neural")
                        .doc("Gradient of embedding_bag's weight: each dy added to the rows of its bag, in order.")
                        .input("dy", kFloating, "[B, D]", PG_INPUT_PROMOTE)
                        .input("index", kInteger, kIndex);
  weights_input(offsets_input(grad)).input("weight", kFloating, "[V, D]", PG_INPUT_META);
  mode_attr(bag_attrs(grad))
      .output("dweight", "shape of weight")
      .shape([](ShapeContext& c) {
        check_flow(c, check_bags(c, 4, 1, 2), 4);
        if (c.has(3)) c.check_same_shape(3, 1), c.check_same_dtype(3, 0);
        c.out(0).set(c.dtype(0), c.shape(4));
      })
      .saves("dy", "index", "offsets", "per_sample_weights")
      .grad([](GradContext& g) {
        if (g.needed(0)) g.din(0) = emit_bags(g, g.dout(0), g.in(1), g.in(2), g.in(3));
        if (g.needed(3)) g.din(3) = emit_grad_weights(g, g.in(0), g.dout(0), g.in(1), g.in(2));
      })
      .decompose([](ExpandContext& e) {
        Bags bags(e, e.in(1), e.in(2));
        Value dy = widen(e.in(0));
        if (e.get<Choice>("mode") == 1) dy = dy / unsqueeze(bags.count(dy.dtype()), 1);
        Value rows = bags.spread(dy);
        if (e.has(3)) rows = rows * unsqueeze(widen(e.in(3)), e.in(3).rank());
        static constinit OpRef op("embedding_grad", "padding_idx");
        Value sums =
            Call(e.builder(), op).input(rows).input(e.in(1)).input(e.in(4)).set(0, e.get<int>("padding_idx")).emit();
        e.out(0) = cast(sums, e.in(0).dtype());
      });

  OpBuilder& by_weights = declare_op("embedding_bag_grad_weights")
                              .category("neural")
                              .doc(
                                  "Gradient of embedding_bag's per_sample_weights: the product of each index' row and "
                                  "its bag's dy, added up.")
                              .input("dy", kFloating, "[B, D]", PG_INPUT_PROMOTE)
                              .input("weight", kFloating, "[V, D]", PG_INPUT_PROMOTE)
                              .input("index", kInteger, kIndex);
  bag_attrs(offsets_input(by_weights))
      .output("dweights", "shape of index")
      .shape([](ShapeContext& c) {
        check_flow(c, check_bags(c, 1, 2, 3), 1);
        c.check_same_dtype(0, 1);
        c.out(0).set(c.dtype(1), c.shape(2));
      })
      .saves("dy", "weight", "index", "offsets")
      .grad([](GradContext& g) {
        if (g.needed(0)) g.din(0) = emit_bags(g, g.in(1), g.in(2), g.in(3), g.dout(0));
        if (g.needed(1)) g.din(1) = emit_grad(g, g.in(0), g.in(2), g.in(3), g.dout(0), g.in(1));
      })
      .decompose([](ExpandContext& e) {
        Bags bags(e, e.in(2), e.in(3));
        Value products = bags.pick(e.in(1), {}) * bags.spread(widen(e.in(0)));
        e.out(0) = cast(bags.masked(sum(products, make_ints({-1}))), e.in(1).dtype());
      });
}

void declare_largest() {
  OpBuilder& bag = declare_op("embedding_bag_max")
                       .category("neural")
                       .doc(
                           "The largest values of rows of weight by index, a bag at a time; 0 for a bag of none. The "
                           "first of equal ones has the gradient. An index out of range is an error that names it.")
                       .input("weight", kFloating, "[V, D]")
                       .input("index", kInteger, kIndex);
  bag_attrs(offsets_input(bag))
      .output("y", "[B, D]")
      .hidden("rows", "[B, D]: the rows that hold them, -1 for a bag of none")
      .shape([](ShapeContext& c) {
        Shape shape{check_bags(c, 0, 1, 2), c.dim(0, 1)};
        c.out(0).set(c.dtype(0), shape);
        c.out(1).set(PG_I64, shape);
      })
      .saves("rows")
      .grad([](GradContext& g) {
        static constinit OpRef op("embedding_bag_max_grad");
        g.din(0) = Call(g.builder(), op).input(g.dout(0)).input(g.out(1)).input(g.in(0)).emit();
      })
      .decompose([](ExpandContext& e) {
        Bags bags(e, e.in(1), e.in(2));
        Bags::Largest largest = bags.largest(e.in(0));
        e.out(0) = largest.value;
        if (e.output_count() > 1) e.out(1) = largest.row;
      });

  declare_op("embedding_bag_max_grad")
      .category("neural")
      .doc("Gradient of embedding_bag_max: each dy added to the element that it came from.")
      .input("dy", kFloating, "[B, D]")
      .input("rows", kInteger, "[B, D]: rows of weight, from 0; -1 for none")
      .input("weight", kFloating, "[V, D]", PG_INPUT_META)
      .output("dweight", "shape of weight")
      .shape([](ShapeContext& c) {
        c.check_rank(2, 2, 2);
        c.check_index(1);
        c.check_same_shape(0, 1);
        c.check_rank(0, 2, 2);
        c.check_dim(0, 1, c.dim(2, 1), "the width of weight");
        c.out(0).set(c.dtype(0), c.shape(2));
      })
      .saves("rows")
      .grad([](GradContext& g) {
        Value rows = g.in(1), none = eq(rows, -1.0);
        g.din(0) = where(none, 0.0, gather(g.dout(0), where(none, 0.0, rows), 0));
      })
      .decompose([](ExpandContext& e) {
        static constinit OpRef op("gather_grad", "axis");
        Value none = eq(e.in(1), -1.0), dy = where(none, 0.0, e.in(0)), rows = where(none, 0.0, e.in(1));
        e.out(0) = Call(e.builder(), op).input(dy).input(rows).input(e.in(2)).set(0, 0).emit();
      });
}

const bool declared = [] {
  declare_sums();
  declare_largest();
  return true;
}();

}  // namespace
}  // namespace pg::schema_embedding_bag
