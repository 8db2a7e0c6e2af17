// SPDX-License-Identifier: Apache-2.0
// What the gradients of activations emit: d times the slope at x (or at the result y), in one pass. A row an operator;
// its own gradient is by the slope's slope.
#include <cmath>

#include "../rules.hpp"

namespace pg::schema_slope {
namespace {

// A function of x, or y, and the attributes.
using Formula = Value (*)(const AttrReader& a, Value x);

struct Slope {
  const char *name, *expression, *doc;
  const char* of;  // x or y
  void (*attrs)(OpBuilder& op);
  Formula slope;
  Formula curve;  // NULL: 0 almost everywhere
  OpRef self;
};

const double kRootHalf = std::sqrt(0.5), kBell = 1 / std::sqrt(2 * std::acos(-1.0));
const double kTanhScale = std::sqrt(2 / std::acos(-1.0)), kCubic = 0.044715;

Value one_where(Value condition, Value x) { return cast(condition, x.dtype()); }
Value density(Value x) { return exp(square(x) * -0.5) * kBell; }

// Of gelu's tanh form: t = tanh(k (x + c x^3)), and the derivatives of what stands in it.
struct TanhForm {
  Value t, inner, bend;
  explicit TanhForm(Value x) {
    Value x2 = square(x);
    t = tanh(x * (x2 * (kCubic * kTanhScale) + kTanhScale));
    inner = x2 * (3 * kCubic * kTanhScale) + kTanhScale;
    bend = x * (6 * kCubic * kTanhScale);
  }
};

Value gelu_slope(const AttrReader& a, Value x) {
  if (a.get<Choice>("approximate") == 0) return (erf(x * kRootHalf) + 1.0) * 0.5 + x * density(x);
  TanhForm f(x);
  return (f.t + 1.0) * 0.5 + x * (1.0 - square(f.t)) * f.inner * 0.5;
}
Value gelu_curve(const AttrReader& a, Value x) {
  if (a.get<Choice>("approximate") == 0) return density(x) * (2.0 - square(x));
  TanhForm f(x);
  Value level = 1.0 - square(f.t);
  return level * (f.inner + x * (f.bend - f.t * square(f.inner) * 2.0) * 0.5);
}

Value silu_slope(const AttrReader&, Value x) {
  Value s = sigmoid(x);
  return s * (x * (1.0 - s) + 1.0);
}
Value silu_curve(const AttrReader&, Value x) {
  Value s = sigmoid(x);
  return s * (1.0 - s) * (x * (1.0 - s * 2.0) + 2.0);
}

// tanh(softplus(x)), whose slope is sigmoid(x) (1 - t^2).
Value tanh_softplus(Value x) { return tanh(apply<"softplus">(x)); }
Value mish_slope(const AttrReader&, Value x) {
  Value t = tanh_softplus(x);
  return t + x * sigmoid(x) * (1.0 - square(t));
}
Value mish_curve(const AttrReader&, Value x) {
  Value t = tanh_softplus(x), s = sigmoid(x);
  return s * (1.0 - square(t)) * (x * (1.0 - s - t * s * 2.0) + 2.0);
}

// exp of positive x may overflow where it is not used: it is limited, or 0 * inf would reach second derivatives.
Value elu_part(const AttrReader& a, Value x, int times) {
  double scale = a.get<double>("input_scale");
  return exp(minimum(x, 0.0) * scale) * (a.get<double>("alpha") * a.get<double>("scale") * std::pow(scale, times));
}
Value elu_slope(const AttrReader& a, Value x) {
  Value negative = elu_part(a, x, 1);
  return where(gt(x, 0.0), a.get<double>("scale"), negative);
}
Value elu_curve(const AttrReader& a, Value x) { return where(gt(x, 0.0), 0.0, elu_part(a, x, 2)); }

Value softplus_slope(const AttrReader& a, Value x) {
  Value z = x * a.get<double>("beta");
  return where(gt(z, a.get<double>("threshold")), 1.0, sigmoid(z));
}
Value softplus_curve(const AttrReader& a, Value x) {
  double beta = a.get<double>("beta");
  Value z = x * beta, s = sigmoid(z);
  return where(gt(z, a.get<double>("threshold")), 0.0, s * (1.0 - s) * beta);
}

Value hardtanh_slope(const AttrReader& a, Value x) {
  Value inside = logical_and(gt(x, a.get<double>("min_val")), lt(x, a.get<double>("max_val")));
  return one_where(inside, x);
}
Value hardswish_slope(const AttrReader&, Value x) {
  Value middle = x / 3.0 + 0.5, low = where(lt(x, -3.0), 0.0, middle);
  return where(gt(x, 3.0), 1.0, low);
}
Value hardswish_curve(const AttrReader&, Value x) { return one_where(logical_and(ge(x, -3.0), le(x, 3.0)), x) / 3.0; }

void none(OpBuilder&) {}

const Slope kSlopes[] = {
    {"relu_grad", "ReluGrad(y, d)", "d where y > 0, else 0.", "y", none,
     [](auto&, Value y) { return one_where(gt(y, 0.0), y); }, nullptr, OpRef("relu_grad")},
    {"hardtanh_grad", "HardtanhGrad(x, d; min_val, max_val)", "d where min_val < x < max_val, else 0.", "x",
     [](OpBuilder& op) {
       op.attr<double>("min_val", -1, "lower bound").runtime().attr<double>("max_val", 1, "upper bound").runtime();
     },
     hardtanh_slope, nullptr, OpRef("hardtanh_grad")},
    {"leaky_relu_grad", "LeakyReluGrad(x, d; negative_slope)", "d where x > 0, else negative_slope * d.", "x",
     [](OpBuilder& op) { op.attr<double>("negative_slope", 0.01, "slope for negative x").runtime(); },
     [](auto& a, Value x) {
       Value positive = one_where(gt(x, 0.0), x);
       return positive * (1 - a.template get<double>("negative_slope")) + a.template get<double>("negative_slope");
     },
     nullptr, OpRef("leaky_relu_grad")},
    {"elu_grad", "EluGrad(x, d; alpha, scale, input_scale)",
     "d * scale * (1 where x > 0, else alpha * input_scale * exp(input_scale * x)).", "x",
     [](OpBuilder& op) {
       op.attr<double>("alpha", 1, "of the exponential").runtime();
       op.attr<double>("scale", 1, "of all").runtime();
       op.attr<double>("input_scale", 1, "of x in the exponential").runtime();
     },
     elu_slope, elu_curve, OpRef("elu_grad")},
    {"sigmoid_grad", "SigmoidGrad(y, d)", "d * y * (1 - y).", "y", none, [](auto&, Value y) { return y * (1.0 - y); },
     [](auto&, Value y) { return 1.0 - y * 2.0; }, OpRef("sigmoid_grad")},
    {"tanh_grad", "TanhGrad(y, d)", "d * (1 - y^2).", "y", none, [](auto&, Value y) { return 1.0 - square(y); },
     [](auto&, Value y) { return y * -2.0; }, OpRef("tanh_grad")},
    {"silu_grad", "SiluGrad(x, d)", "d times the slope of silu at x.", "x", none, silu_slope, silu_curve,
     OpRef("silu_grad")},
    {"gelu_grad", "approximate ? GeluTanhGrad(x, d) : GeluGrad(x, d)", "d times the slope of gelu at x.", "x",
     [](OpBuilder& op) {
       op.choice("approximate", {"none", "tanh"}, 0, "the exact function, or its tanh form");
     },
     gelu_slope, gelu_curve, OpRef("gelu_grad")},
    {"softplus_grad", "SoftplusGrad(x, d; beta, threshold)", "d * sigmoid(beta * x), and d where beta * x > threshold.",
     "x",
     [](OpBuilder& op) {
       op.attr<double>("beta", 1, "of softplus").runtime().attr<double>("threshold", 20, "of softplus").runtime();
     },
     softplus_slope, softplus_curve, OpRef("softplus_grad")},
    {"mish_grad", "MishGrad(x, d)", "d times the slope of mish at x.", "x", none, mish_slope, mish_curve,
     OpRef("mish_grad")},
    {"hardswish_grad", "HardswishGrad(x, d)", "d times the slope of hardswish at x.", "x", none, hardswish_slope,
     hardswish_curve, OpRef("hardswish_grad")},
};

void differentiate(GradContext& g, const Slope& row) {
  Value x = g.in(0), d = g.in(1), dd = g.dout(0);
  if (g.needed(0)) g.din(0) = row.curve == nullptr ? zeros_like(x) : sum_like(dd * d * row.curve(g, x), x);
  if (g.needed(1)) g.din(1) = sum_like(g.call(row.self, x, dd), d);
}

void declare(const Slope& row) {
  OpBuilder& op = declare_op(row.name)
                      .category("elementwise")
                      .doc(row.doc)
                      .expression(row.expression)
                      .input(row.of, kFloating, "any shape", PG_INPUT_PROMOTE)
                      .input("d", kFloating, "a shape that broadcasts with the other", PG_INPUT_PROMOTE);
  row.attrs(op);
  op.output("z", "the shape that both broadcast to")
      .traits(PG_OP_ELEMENTWISE)
      .shape([](ShapeContext& c) {
        c.check_same_dtype(1, 0);
        c.out(0).set(c.dtype(0), broadcast(c.shape(0), c.shape(1)));
      })
      .saves(row.of, "d")
      .grad([&row](GradContext& g) { differentiate(g, row); })
      .decompose([&row](ExpandContext& e) {
        e.out(0) = cast(widen(e.in(1)) * row.slope(e, widen(e.in(0))), e.in(1).dtype());
      });
}

const bool declared = [] {
  for (const Slope& row : kSlopes) declare(row);
  return true;
}();

}  // namespace
}  // namespace pg::schema_slope
