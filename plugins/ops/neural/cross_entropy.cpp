// SPDX-License-Identifier: Apache-2.0
// cross_entropy and cross_entropy_grad.
#include "cross_entropy.hpp"

namespace pg::schema_cross_entropy {
namespace {

OpBuilder& loss_attrs(OpBuilder& op) {
  return op.attr<int>("ignore_index", -100, "positions with this target do not count")
      .choice("reduction", {"mean", "sum", "none"}, kMean,
              "mean over the positions that count (weighted), sum, or none")
      .attr<double>("label_smoothing", 0, "share of the target spread evenly over all classes, in [0, 1]")
      .runtime();
}

// Checks logits [N, C, ...] or [C] against target [N, ...] or [] and weight [C].
void check_loss(const ShapeContext& c, uint32_t logits, uint32_t target, uint32_t weight) {
  c.check_rank(logits, 1);
  c.check_index(target);
  uint32_t axis = c.rank(logits) == 1 ? 0 : 1;
  Shape want = c.shape(logits);
  want.erase(axis);
  Shape got = c.shape(target);
  bool fits = want.rank == got.rank;
  for (uint32_t i = 0; fits && i < got.rank; i++) fits = want[i].may_equal(got[i]);
  c.need(fits, "%s does not fit %s; expected %s, one class index for each position", c.text(target).c_str(),
         c.text(logits).c_str(), want.text().c_str());
  if (!c.has(weight)) return;
  c.check_rank(weight, 1, 1);
  c.check_dim(weight, 0, c.dim(logits, axis), "the number of classes");
  c.check_same_dtype(weight, logits);
}

void differentiate(GradContext& g) {
  static constinit OpRef op("cross_entropy_grad");
  Value dx, log_probs = g.out(1);
  if (g.dout(0)) dx = g.call(op, g.dout(0), log_probs, g.in(1), g.in(2));
  // Second derivatives reach the log-probabilities too: as log_softmax.
  if (Value d = g.dout(1)) {
    pg_ints axis = make_ints({log_probs.rank() == 1 ? 0 : 1});
    Value more = d - exp(log_probs) * sum(d, axis, true);
    dx = dx ? dx + more : more;
  }
  g.din(0) = dx;
}

// dx = slope - p total, with p = exp(log_probs).
void second_order(GradContext& g) {
  Value dloss = g.in(0), log_probs = g.in(1), d = g.dout(0);
  CrossEntropy ce(g, log_probs, g.in(2), g.in(3));
  Value p = exp(log_probs);
  if (g.needed(0)) g.din(0) = ce.loss(d - sum(d * p, make_ints({ce.axis()}), true));
  if (g.needed(1)) g.din(1) = -(d * p * ce.total(dloss));
}

const bool declared = [] {
  loss_attrs(declare_op("cross_entropy").category("neural"))
      .doc(
          "Negative log-likelihood of the target classes under softmax(logits). The class axis is the second one, or "
          "the only one. Targets count from 0; one that is out of range is an error that names it.")
      .input("logits", kFloating, "[N, C], [N, C, ...] or [C]")
      .input("target", kInteger, "[N], [N, ...] or []: class indices")
      .input("weight", kFloating, "[C]: weights of the classes", PG_INPUT_OPTIONAL)
      .output("loss", "[], or shape of target for reduction none")
      .hidden("log_probs", "shape of logits: log_softmax along the class axis")
      .numeric(PG_NUMERIC_FLOAT32)
      .shape([](ShapeContext& c) {
        check_loss(c, 0, 1, 2);
        c.out(0).set(c.dtype(0), c.get<Choice>("reduction") == kNone ? c.shape(1) : Shape{});
        c.out(1) = c.in(0);
      })
      .saves("target", "weight", "log_probs")
      .grad(differentiate)
      .decompose([](ExpandContext& e) {
        Value logits = e.in(0);
        Value log_probs = log_softmax(logits, logits.rank() == 1 ? 0 : 1);
        e.out(0) = CrossEntropy(e, log_probs, e.in(1), e.in(2)).loss(log_probs);
        if (e.output_count() > 1) e.out(1) = log_probs;
      });

  loss_attrs(declare_op("cross_entropy_grad").category("neural"))
      .doc("Gradient of cross_entropy's logits.")
      .input("dloss", kFloating, "[], or shape of target for reduction none")
      .input("log_probs", kFloating, "[N, C], [N, C, ...] or [C]")
      .input("target", kInteger, "[N], [N, ...] or []: class indices")
      .input("weight", kFloating, "[C]: weights of the classes", PG_INPUT_OPTIONAL)
      .output("dlogits", "shape of log_probs")
      .numeric(PG_NUMERIC_FLOAT32)
      .shape([](ShapeContext& c) {
        check_loss(c, 1, 2, 3);
        c.check_same_dtype(0, 1);
        if (c.get<Choice>("reduction") == kNone)
          c.check_same_shape(0, 2);
        else
          c.check_rank(0, 0, 0);
        c.out(0) = c.in(1);
      })
      .saves("dloss", "log_probs", "target", "weight")
      .grad(second_order)
      .decompose([](ExpandContext& e) {
        Value log_probs = e.in(1);
        CrossEntropy ce(e, log_probs, e.in(2), e.in(3));
        e.out(0) = ce.slope(e.in(0), log_probs) - exp(log_probs) * ce.total(e.in(0));
      });
  return true;
}();

}  // namespace
}  // namespace pg::schema_cross_entropy
