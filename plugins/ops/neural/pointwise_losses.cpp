// SPDX-License-Identifier: Apache-2.0
// Losses that compare a prediction x with a target y element by element, and what their gradients emit: a row a loss.
// NAME gives the costs, reduced; NAME_grad their cotangent, by x. Both are one pass where a device has kernels for
// them.
#include <string>

#include "pointwise_formulas.hpp"

namespace pg::schema_pointwise_losses {
namespace {

enum Reduction { kMean = 0, kSum = 1, kNone = 2 };

struct Loss {
  const char *name, *doc;
  const char *x, *y;  // what the inputs are called
  void (*attrs)(OpBuilder& op);
  const char *third, *third_doc;  // NULL: there is no third tensor
  bool weighed;
  Formulas f;
  OpRef grad;
  bool third_needed = false;
};

// ---- the table ----

void none(OpBuilder&) {}

Loss kLosses[] = {
    {"mse_loss",
     "Squared differences, (x - y)^2.",
     "x",
     "y",
     none,
     nullptr,
     nullptr,
     true,
     {mse, mse_x, nullptr, nullptr, mse_xx, nullptr, nullptr, true},
     OpRef("mse_loss_grad")},
    {"l1_loss",
     "Absolute differences, |x - y|.",
     "x",
     "y",
     none,
     nullptr,
     nullptr,
     true,
     {l1, l1_x, nullptr, nullptr, nullptr, nullptr, nullptr, true},
     OpRef("l1_loss_grad")},
    {"huber_loss",
     "Quadratic within delta, linear outside (Huber, 1964): with d = |x - y|, d^2 / 2 where d < delta, else "
     "delta (d - delta / 2).",
     "x",
     "y",
     [](OpBuilder& op) { op.attr<double>("delta", 1, "where the quadratic part ends, above 0").runtime(); },
     nullptr,
     nullptr,
     true,
     {huber, huber_x, nullptr, nullptr, huber_xx, nullptr, nullptr, true},
     OpRef("huber_loss_grad")},
    {"smooth_l1_loss",
     "huber_loss divided by beta (Girshick, 2015): with d = |x - y|, d^2 / (2 beta) where d < beta, else d - beta / 2.",
     "x",
     "y",
     [](OpBuilder& op) { op.attr<double>("beta", 1, "where the quadratic part ends; 0: the L1 loss").runtime(); },
     nullptr,
     nullptr,
     true,
     {smooth_l1, smooth_l1_x, nullptr, nullptr, smooth_l1_xx, nullptr, nullptr, true},
     OpRef("smooth_l1_loss_grad")},
    {"binary_cross_entropy",
     "Cross entropy -(y log(p) + (1 - y) log(1 - p)) of probabilities p, logarithms being -100 at least. A p outside "
     "of [0, 1] is an "
     "error that names it. The gradient (p - y) / (p (1 - p)) is divided by 1e-12 at least (float16: 2^-15).",
     "p",
     "y",
     none,
     nullptr,
     nullptr,
     true,
     {bce, bce_x, bce_y, nullptr, bce_xx, bce_xy, nullptr, false},
     OpRef("binary_cross_entropy_grad")},
    {"binary_cross_entropy_with_logits",
     "Cross entropy -(pos_weight y log(s) + (1 - y) log(1 - s)) with s = sigmoid(x), safe for any size of x.",
     "x",
     "y",
     none,
     "pos_weight",
     "what positives cost; broadcasts against y",
     true,
     {logits, logits_x, logits_y, logits_a, logits_xx, logits_xy, logits_xa, false},
     OpRef("binary_cross_entropy_with_logits_grad")},
    {"kl_div",
     "y (log(y) - x), x being log probabilities and y probabilities, of which those of 0 cost nothing (Kullback and "
     "Leibler, 1951).",
     "x",
     "y",
     [](OpBuilder& op) { op.attr<bool>("log_target", false, "y has log probabilities too"); },
     nullptr,
     nullptr,
     false,
     {kl_div, kl_div_x, kl_div_y, nullptr, nullptr, kl_div_xy, nullptr, false},
     OpRef("kl_div_grad")},
    {"poisson_nll_loss",
     "Negative log likelihood exp(x) - y x of counts y under Poisson's distribution of mean exp(x), or x - y log(x + "
     "eps) of mean x; without log(y!), which x does not change.",
     "x",
     "y",
     [](OpBuilder& op) {
       op.attr<bool>("log_input", true, "x is the mean's logarithm");
       op.attr<bool>("full", false, "add Stirling's y log(y) - y + log(2 pi y) / 2 where y > 1");
       op.attr<double>("eps", 1e-8, "added to x in its logarithm").runtime();
     },
     nullptr,
     nullptr,
     false,
     {poisson, poisson_x, poisson_y, nullptr, poisson_xx, poisson_xy, nullptr, false},
     OpRef("poisson_nll_loss_grad")},
    {"gaussian_nll_loss",
     "Negative log likelihood (log(var) + (x - y)^2 / var) / 2 of y under a normal distribution of mean x and variance "
     "var, of which what is below eps counts as eps, with its gradient (Nix and Weigend, 1994). A negative var is an "
     "error that names it.",
     "x",
     "y",
     [](OpBuilder& op) {
       op.attr<bool>("full", false, "add log(2 pi) / 2");
       op.attr<double>("eps", 1e-6, "least variance").runtime();
     },
     "var",
     "variance; broadcasts against the costs",
     false,
     {gaussian, gaussian_x, nullptr, gaussian_a, gaussian_xx, nullptr, gaussian_xa, true},
     OpRef("gaussian_nll_loss_grad"),
     true},
    {"hinge_loss",
     "max(0, 1 - y x) for targets y of -1 and 1.",
     "x",
     "y",
     none,
     nullptr,
     nullptr,
     false,
     {hinge, hinge_x, hinge_y, nullptr, nullptr, hinge_xy, nullptr, false},
     OpRef("hinge_loss_grad")},
    {"soft_margin_loss",
     "log(1 + exp(-y x)) for targets y of -1 and 1.",
     "x",
     "y",
     none,
     nullptr,
     nullptr,
     false,
     {soft_margin, soft_margin_x, soft_margin_y, nullptr, soft_margin_xx, soft_margin_xy, nullptr, false},
     OpRef("soft_margin_loss_grad")},
    {"hinge_embedding_loss",
     "x where y is 1 (pairs that belong together: a distance to be small), max(0, margin - x) where it is -1.",
     "x",
     "y",
     [](OpBuilder& op) { op.attr<double>("margin", 1, "how large the distance of others should be").runtime(); },
     nullptr,
     nullptr,
     false,
     {hinge_embedding, hinge_embedding_x, nullptr, nullptr, nullptr, nullptr, nullptr, false},
     OpRef("hinge_embedding_loss_grad")},
};

// ---- rules ----

// Where the inputs stand: of NAME x y [third] [weight], of NAME_grad the same behind dloss.
struct Places {
  uint32_t x, y, third, weight;
  Places(const Loss& row, uint32_t first)
      : x(first),
        y(first + 1),
        third(row.third != nullptr ? first + 2 : UINT32_MAX),
        weight(row.weighed ? first + 2 + (row.third != nullptr ? 1u : 0u) : UINT32_MAX) {}
};

Value optional(const ValueContext& c, uint32_t place) { return place == UINT32_MAX ? Value{} : c.in(place); }

// The call's tensors in the dtype that compositions compute in, prediction and target in the shape of the costs.
Terms terms_of(const ValueContext& c, const Places& at) {
  Terms t{c, widen(c.in(at.x)), widen(c.in(at.y)), widen(optional(c, at.third)), tiny_of(c.in(at.x))};
  if (!same_dims(t.x.meta(), t.y.meta())) {
    Value shape = t.x + t.y;
    t.x = expand_like(t.x, shape), t.y = expand_like(t.y, shape);
  }
  return t;
}

Value divided_by_count(Value d, Value costs) {
  AxisSet all;
  all.bits = (1u << costs.rank()) - 1;
  int64_t count = covered(costs.meta(), all);
  return count >= 0 ? d / static_cast<double>(count) : d / sum(ones_like(costs));
}

// The cotangent of each cost, without the weight.
Value share_of(Value d, const Terms& t) {
  return t.attrs.get<Choice>("reduction") == kMean ? divided_by_count(d, t.x) : d;
}

Value reduced(const AttrReader& attrs, Value costs) {
  int32_t how = attrs.get<Choice>("reduction");
  return how == kNone ? costs : how == kSum ? sum(costs) : mean(costs);
}

Value times(Value a, Value b) { return b ? a * b : a; }

// A cotangent in the shape and dtype of what it belongs to.
Value fitted(Value d, Value x) { return sum_like(cast(d, x.dtype()), x); }

Value emit_grad(GradContext& g, const Loss& row, const Places& at) {
  Call call(g.builder(), row.grad);
  call.copy_attrs(g.info(), g.data()).input(g.dout(0)).input(g.in(at.x)).input(g.in(at.y));
  if (row.third != nullptr) call.input(g.in(at.third));
  if (row.weighed) call.input(g.in(at.weight));
  return call.emit();
}

void differentiate(GradContext& g, const Loss& row) {
  Places at(row, 0);
  const Formulas& f = row.f;
  bool by_third = row.third != nullptr && g.needed(at.third), by_weight = row.weighed && g.needed(at.weight);
  bool turned = f.opposite && g.needed(at.y), by_y = f.y != nullptr && g.needed(at.y);
  Value by_x = g.needed(at.x) || turned ? emit_grad(g, row, at) : Value{};
  if (g.needed(at.x)) g.din(at.x) = sum_like(by_x, g.in(at.x));
  if (turned) g.din(at.y) = sum_like(-by_x, g.in(at.y));
  if (!by_y && !by_third && !by_weight) return;
  Terms t = terms_of(g, at);
  Value weight = widen(optional(g, at.weight)), share = share_of(widen(g.dout(0)), t);
  if (by_y) g.din(at.y) = fitted(times(share * f.y(t), weight), g.in(at.y));
  if (by_third) g.din(at.third) = fitted(times(share * f.a(t), weight), g.in(at.third));
  if (by_weight) g.din(at.weight) = fitted(share * f.value(t), g.in(at.weight));
}

// dx = share weight slope(x, y, a)
void second_order(GradContext& g, const Loss& row) {
  Places at(row, 1);
  const Formulas& f = row.f;
  Terms t = terms_of(g, at);
  Value dd = widen(g.dout(0)), weight = widen(optional(g, at.weight));
  if (g.needed(0)) {
    Value each = times(dd * f.x(t), weight);
    if (g.get<Choice>("reduction") != kNone) each = share_of(sum(each), t);
    g.din(0) = fitted(each, g.in(0));
  }
  Value along = dd * share_of(widen(g.in(0)), t);
  if (row.weighed && g.needed(at.weight)) g.din(at.weight) = fitted(along * f.x(t), g.in(at.weight));
  along = times(along, weight);
  bool turned = f.opposite && f.xx != nullptr && g.needed(at.y);
  if (f.xx != nullptr && (g.needed(at.x) || turned)) {
    Value by_x = along * f.xx(t);
    if (g.needed(at.x)) g.din(at.x) = fitted(by_x, g.in(at.x));
    if (turned) g.din(at.y) = fitted(-by_x, g.in(at.y));
  }
  if (f.xy != nullptr && g.needed(at.y)) g.din(at.y) = fitted(along * f.xy(t), g.in(at.y));
  if (row.third != nullptr && g.needed(at.third)) g.din(at.third) = fitted(along * f.xa(t), g.in(at.third));
}

// The shape of the costs.
Shape check(const ShapeContext& c, const Places& at) {
  c.check_same_dtype(at.y, at.x);
  Shape shape = broadcast(c.shape(at.x), c.shape(at.y));
  for (uint32_t extra : {at.third, at.weight}) {
    if (extra == UINT32_MAX || !c.has(extra)) continue;
    c.check_same_dtype(extra, at.x);
    Shape both = broadcast(shape, c.shape(extra));
    bool fits = both.rank == shape.rank;
    for (uint32_t i = 0; fits && i < shape.rank; i++) fits = both[i].may_equal(shape[i]);
    c.need(fits, "%s does not fit costs %s", c.text(extra).c_str(), shape.text().c_str());
  }
  return shape;
}

void add_inputs(OpBuilder& op, const Loss& row) {
  op.input(row.x, kFloating, "prediction, any shape", PG_INPUT_PROMOTE)
      .input(row.y, kFloating, "target; broadcasts with the prediction", PG_INPUT_PROMOTE);
  constexpr uint32_t flags = PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL;
  if (row.third != nullptr)
    op.input(row.third, kFloating, row.third_doc, row.third_needed ? uint32_t{PG_INPUT_PROMOTE} : flags);
  if (row.weighed) op.input("weight", kFloating, "factor of each cost; broadcasts against them", flags);
  row.attrs(op);
  op.choice("reduction", {"mean", "sum", "none"}, kMean, "mean or sum over all elements, or none");
  op.numeric(PG_NUMERIC_FLOAT32).traits(PG_OP_FLOAT_RESULT);
}

void save_all(OpBuilder& op, const Loss& row) {
  op.saves(row.x, row.y);
  if (row.third != nullptr) op.saves(row.third);
  if (row.weighed) op.saves("weight");
}

void declare(const Loss& row) {
  OpBuilder& loss = declare_op(row.name).category("neural").doc(row.doc);
  add_inputs(loss, row);
  loss.output("loss", "[], or the shape that the inputs broadcast to for reduction none")
      .shape([&row](ShapeContext& c) {
        Shape shape = check(c, Places(row, 0));
        c.out(0).set(c.dtype(0), c.get<Choice>("reduction") == kNone ? shape : Shape{});
      })
      .grad([&row](GradContext& g) { differentiate(g, row); })
      .decompose([&row](ExpandContext& e) {
        Places at(row, 0);
        Value costs = times(row.f.value(terms_of(e, at)), widen(optional(e, at.weight)));
        e.out(0) = cast(reduced(e, costs), e.in(0).dtype());
      });
  save_all(loss, row);

  static const std::string suffix = "_grad";
  OpBuilder& grad = declare_op(row.name + suffix)
                        .category("neural")
                        .doc(std::string("Gradient of ") + row.name + " by " + row.x + ".")
                        .input("dloss", kFloating, "what flows back into the loss", PG_INPUT_PROMOTE);
  add_inputs(grad, row);
  grad.output("dx", "the shape that the prediction and the target broadcast to")
      .shape([&row](ShapeContext& c) {
        Shape shape = check(c, Places(row, 1));
        c.check_same_dtype(0, 1);
        if (c.get<Choice>("reduction") != kNone) {
          c.check_rank(0, 0, 0);
        } else {
          bool fits = c.rank(0) == shape.rank;
          for (uint32_t i = 0; fits && i < shape.rank; i++) fits = c.dim(0, i).may_equal(shape[i]);
          c.need(fits, "%s does not fit costs %s", c.text(0).c_str(), shape.text().c_str());
        }
        c.out(0).set(c.dtype(1), shape);
      })
      .grad([&row](GradContext& g) { second_order(g, row); })
      .decompose([&row](ExpandContext& e) {
        Places at(row, 1);
        Terms t = terms_of(e, at);
        Value slope = times(row.f.x(t), widen(optional(e, at.weight)));
        e.out(0) = cast(share_of(widen(e.in(0)), t) * slope, e.in(1).dtype());
      });
  grad.saves("dloss");
  save_all(grad, row);
}

// log(1 - p) - log(p): the slope of binary_cross_entropy by y. Its own is limited as that by p is.
OpBuilder& declare_odds() {
  return declare_op("bce_odds")
      .category("neural")
      .doc("log(1 - p) - log(p), logarithms being -100 at least: the gradient of binary_cross_entropy by y.")
      .input("p", kFloating, "probabilities")
      .output("z", "shape of p")
      .shape(like_input)
      .saves("p")
      .grad([](GradContext& g) { g.din(0) = -(g.dout(0) / spread_of(g.in(0), tiny_of(g.in(0)))); })
      .decompose([](ExpandContext& e) {
        Value p = widen(e.in(0));
        e.out(0) = cast(clamped_log(1.0 - p) - clamped_log(p), e.in(0).dtype());
      });
}

// What an element of gaussian_nll_loss depends on its variance by. What eps stands in for keeps its gradient.
OpBuilder& declare_at_least() {
  return declare_op("at_least")
      .category("neural")
      .doc("x, or eps where that is more, with the gradient of x throughout.")
      .input("x", kFloating, "any shape")
      .attr<double>("eps", 0, "the least result")
      .runtime()
      .output("y", "shape of x")
      .traits(PG_OP_ELEMENTWISE)
      .expression("Maximum(x, eps)")
      .shape(like_input)
      .grad([](GradContext& g) { g.din(0) = g.dout(0); });
}
OpBuilder& declare_by_var() {
  return declare_op("gaussian_nll_by_var")
      .category("neural")
      .doc("(1 - (x - y)^2 / v) / (2 v) with v = at_least(var, eps): the gradient of gaussian_nll_loss by var.")
      .input("x", kFloating, "prediction, any shape", PG_INPUT_PROMOTE)
      .input("y", kFloating, "target, a shape that broadcasts", PG_INPUT_PROMOTE)
      .input("var", kFloating, "variance, a shape that broadcasts", PG_INPUT_PROMOTE)
      .attr<double>("eps", 1e-6, "least variance")
      .runtime()
      .output("z", "the shape that all broadcast to")
      .traits(PG_OP_ELEMENTWISE)
      .expression("Mul(Div(Sub(1, Div(Square(Sub(x, y)), Maximum(var, eps))), Maximum(var, eps)), 0.5)")
      .shape([](ShapeContext& c) {
        c.check_same_dtype(1, 0), c.check_same_dtype(2, 0);
        c.out(0).set(c.dtype(0), broadcast(broadcast(c.shape(0), c.shape(1)), c.shape(2)));
      })
      .saves("x", "y", "var")
      .grad([](GradContext& g) {
        static constinit OpRef at_least("at_least");
        Value off = g.in(0) - g.in(1), v = g.call(at_least, g.in(2));
        Value d = g.dout(0), by_y = d * (off / square(v));
        if (g.needed(0)) g.din(0) = sum_like(-by_y, g.in(0));
        if (g.needed(1)) g.din(1) = sum_like(by_y, g.in(1));
        if (g.needed(2)) g.din(2) = sum_like(d * ((square(off) / v - 0.5) / square(v)), g.in(2));
      })
      .decompose([](ExpandContext& e) {
        static constinit OpRef at_least("at_least");
        Value off = widen(e.in(0)) - widen(e.in(1)), v = e.call(at_least, widen(e.in(2)));
        e.out(0) = cast((1.0 - square(off) / v) / v * 0.5, e.in(0).dtype());
      });
}

const bool declared = [] {
  for (const Loss& row : kLosses) declare(row);
  declare_odds();
  declare_at_least();
  declare_by_var();
  return true;
}();

}  // namespace
}  // namespace pg::schema_pointwise_losses
