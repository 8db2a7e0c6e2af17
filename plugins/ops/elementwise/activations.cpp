// SPDX-License-Identifier: Apache-2.0
// Activations, and other functions of one tensor with a few numbers: a row each. relu, sigmoid and tanh are in
// unary.cpp.
#include <cmath>

#include "../rules.hpp"

namespace pg::schema_activations {
namespace {

struct Activation {
  const char *name, *expression, *doc;
  uint32_t dtypes;
  const char* saves;  // letters of x and y. y where possible: then the in-place form is differentiable too
  Value (*dx)(GradContext& g, Value d);
  void (*attrs)(OpBuilder& op);
  uint32_t numeric = PG_NUMERIC_KEEP;
};

constexpr double kSeluAlpha = 1.67326324235437728481, kSeluScale = 1.05070098735548049342;
constexpr uint32_t kWide = PG_NUMERIC_FLOAT32;

// ---- cotangents through them ----

template <OpName name>
Value slope_at_x(GradContext& g, Value d) {
  static constinit OpRef op(name.text);
  return g.call(op, g.in(0), d);  // with the attributes that both have
}

Value elu_slope(Value x, Value d, double alpha, double scale, double input_scale) {
  static constinit OpRef op("elu_grad", "alpha", "scale", "input_scale");
  return Call(x.builder, op).input(x).input(d).set(0, alpha).set(1, scale).set(2, input_scale).emit();
}

// Inside the bounds d, outside and at them 0. The result lies at a bound where x does, or beyond.
Value between(Value xy, Value d, double low, double high) {
  static constinit OpRef op("hardtanh_grad", "min_val", "max_val");
  return Call(xy.builder, op).input(xy).input(d).set(0, low).set(1, high).emit();
}

Value where_kept(GradContext& g, Value d) { return where(ne(g.out(0), 0.0), d, 0.0); }

Value logit_slope(GradContext& g, Value d) {
  Value x = g.in(0);
  double eps = g.get<double>("eps");
  if (eps < 0) return d / (x * (1.0 - x));
  Value inside = logical_and(ge(x, eps), le(x, 1 - eps)), other = where(inside, x, 0.5);
  return where(inside, d / (other * (1.0 - other)), 0.0);
}

// ---- attributes ----

void none(OpBuilder&) {}
void lambd(OpBuilder& op) { op.attr<double>("lambd", 0.5, "x within [-lambd, lambd] gives 0").runtime(); }

const Activation kActivations[] = {
    {"silu", "Silu(x)", "x * sigmoid(x), also called swish (Elfwing, Uchibe, Doya 2017).", kFloating, "x",
     slope_at_x<"silu_grad">, none},
    {"gelu", "approximate ? GeluTanh(x) : Gelu(x)",
     "x times the normal distribution function at x (Hendrycks, Gimpel 2016). approximate=\"tanh\": "
     "0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).",
     kFloating, "x", slope_at_x<"gelu_grad">,
     [](OpBuilder& op) {
       op.choice("approximate", {"none", "tanh"}, 0, "the exact function, or its tanh form");
     }},
    {"softplus", "Softplus(x; beta, threshold)",
     "log(1 + exp(beta * x)) / beta, without overflow; x itself where beta * x > threshold.", kFloating, "x",
     slope_at_x<"softplus_grad">,
     [](OpBuilder& op) {
       op.attr<double>("beta", 1, "how sharp the bend at 0 is").runtime();
       op.attr<double>("threshold", 20, "beta * x from which on the result is x").runtime();
     },
     kWide},
    {"logsigmoid", "LogSigmoid(x)", "log(sigmoid(x)), without overflow.", kFloating, "x",
     [](GradContext& g, Value d) { return d * sigmoid(-g.in(0)); }, none, kWide},
    {"mish", "Mish(x)", "x * tanh(softplus(x)) (Misra 2019).", kFloating, "x", slope_at_x<"mish_grad">, none},
    {"leaky_relu", "LeakyRelu(x; negative_slope)", "x where x > 0, else negative_slope * x.", kFloating, "x",
     slope_at_x<"leaky_relu_grad">,
     [](OpBuilder& op) { op.attr<double>("negative_slope", 0.01, "slope for negative x").runtime(); }},
    {"elu", "Elu(x; alpha)", "x where x > 0, else alpha * (exp(x) - 1) (Clevert, Unterthiner, Hochreiter 2015).",
     kFloating, "x", [](GradContext& g, Value d) { return elu_slope(g.in(0), d, g.get<double>("alpha"), 1, 1); },
     [](OpBuilder& op) { op.attr<double>("alpha", 1, "the limit for very negative x is -alpha").runtime(); }},
    {"celu", "Celu(x; alpha)", "x where x > 0, else alpha * (exp(x / alpha) - 1), whose slope is 1 at 0 (Barron 2017).",
     kFloating, "x",
     [](GradContext& g, Value d) {
       double alpha = g.get<double>("alpha");
       return elu_slope(g.in(0), d, alpha, 1, 1 / alpha);
     },
     [](OpBuilder& op) { op.attr<double>("alpha", 1, "the limit for very negative x is -alpha; not 0").runtime(); }},
    {"selu", "Selu(x)",
     "1.0507 * (x where x > 0, else 1.6733 * (exp(x) - 1)), which keeps mean 0 and variance 1 (Klambauer et al. 2017).",
     kFloating, "x", [](GradContext& g, Value d) { return elu_slope(g.in(0), d, kSeluAlpha, kSeluScale, 1); }, none},
    {"hardswish", "Hardswish(x)", "x * relu6(x + 3) / 6 (Howard et al. 2019).", kFloating, "x",
     slope_at_x<"hardswish_grad">, none},
    {"hardsigmoid", "Hardsigmoid(x)", "relu6(x + 3) / 6.", kFloating, "y",
     [](GradContext& g, Value d) { return between(g.out(0), d, 0, 1) / 6.0; }, none},
    {"relu6", "Relu6(x)", "x limited to [0, 6]; its slope at the bounds is 0.", kReal, "y",
     [](GradContext& g, Value d) { return between(g.out(0), d, 0, 6); }, none},
    {"hardtanh", "Hardtanh(x; min_val, max_val)", "x limited to [min_val, max_val]; its slope at the bounds is 0.",
     kReal, "y",
     [](GradContext& g, Value d) { return between(g.out(0), d, g.get<double>("min_val"), g.get<double>("max_val")); },
     [](OpBuilder& op) {
       op.attr<double>("min_val", -1, "lower bound").runtime().attr<double>("max_val", 1, "upper bound").runtime();
     }},
    {"softsign", "Softsign(x)", "x / (1 + |x|).", kFloating, "x",
     [](GradContext& g, Value d) { return d / square(abs(g.in(0)) + 1.0); }, none},
    {"tanhshrink", "Tanhshrink(x)", "x - tanh(x).", kFloating, "x",
     [](GradContext& g, Value d) { return d * square(tanh(g.in(0))); }, none},
    {"hardshrink", "Hardshrink(x; lambd)", "x, but 0 where -lambd <= x <= lambd.", kFloating, "y", where_kept, lambd},
    {"softshrink", "Softshrink(x; lambd)", "x moved by lambd towards 0, and 0 where it is no farther from it.",
     kFloating, "y", where_kept, lambd},
    {"threshold", "Threshold(x; threshold, value)", "x where x > threshold, else value.", kReal, "x",
     [](GradContext& g, Value d) { return where(gt(g.in(0), g.get<double>("threshold")), d, 0.0); },
     [](OpBuilder& op) {
       op.attr<double>("threshold", 0, "what x must exceed").required().runtime();
       op.attr<double>("value", 0, "what stands in for the others").required().runtime();
     }},
    {"logit", "Logit(x; eps)", "log(x / (1 - x)), the inverse of sigmoid.", kFloating, "x", logit_slope,
     [](OpBuilder& op) {
       op.attr<double>("eps", -1, "x is limited to [eps, 1 - eps] before; negative: it is not").runtime();
     },
     kWide},
    {"round", "decimals ? RoundTo(x; decimals) : Round(x)",
     "The nearest whole number, or number of `decimals` decimals; halves go to the even one.", kReal, "",
     [](GradContext& g, Value) { return zeros_like(g.in(0)); },
     [](OpBuilder& op) {
       op.attr<int>("decimals", 0, "decimals to keep; -2 rounds to hundreds").shape([](ShapeContext& c) {
         bool whole = c.get<int>("decimals") == 0;
         c.need(whole || dtype_class(c.dtype(0)) == PG_M_FLOAT, "decimals of %s, which has none",
                dtype_name(c.dtype(0)));
         c.out(0) = c.in(0);
       });
     }},
    {"nan_to_num", "NanToNum(x; nan, posinf, neginf)", "x with numbers in place of NaN and of infinities.", kRealOrBool,
     "x", [](GradContext& g, Value d) { return where(isfinite(g.in(0)), d, 0.0); },
     [](OpBuilder& op) {
       op.attr<double>("nan", 0, "for NaN").runtime();
       op.attr<double>("posinf", NAN, "for infinity; NaN: the largest number of the dtype").runtime();
       op.attr<double>("neginf", NAN, "for -infinity; NaN: the least number of the dtype").runtime();
     }},
};

void declare(const Activation& row) {
  OpBuilder& op = declare_op(row.name)
                      .category("elementwise")
                      .doc(row.doc)
                      .expression(row.expression)
                      .input("x", row.dtypes, "any shape")
                      .output("y", "shape of x")
                      .traits(PG_OP_ELEMENTWISE | PG_OP_IN_PLACE)
                      .numeric(row.numeric)
                      .shape(like_input)
                      .grad([&row](GradContext& g) { g.din(0) = row.dx(g, g.dout(0)); });
  row.attrs(op);
  for (const char* letter = row.saves; *letter != '\0'; letter++) op.saves(*letter == 'x' ? "x" : "y");
}

const bool declared = [] {
  for (const Activation& row : kActivations) declare(row);
  return true;
}();

}  // namespace
}  // namespace pg::schema_activations
