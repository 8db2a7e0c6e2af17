// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of one tensor without attributes: a row each.
#include <cmath>

#include "polygamma.hpp"

namespace pg::schema_unary {
namespace {

// x: input, y: result, d: cotangent of the result.
using Derivative = Value (*)(Value x, Value y, Value d);

enum class Result { same, floating, boolean };

struct Unary {
  const char *name, *expression, *doc;
  uint32_t dtypes;
  Result result;
  Derivative dx;      // NULL: not differentiable
  const char* saves;  // letters of x and y. y where possible: then the in-place form is differentiable too
  uint32_t numeric = PG_NUMERIC_KEEP;
};

constexpr uint32_t kNumber = kReal | PG_M_COMPLEX;
constexpr uint32_t kWide = PG_NUMERIC_FLOAT32;
const double kPi = std::acos(-1.0);
const double kLn2 = std::log(2.0), kLn10 = std::log(10.0), kErfSlope = 2 / std::sqrt(kPi);

Value zero(Value x, Value, Value) { return zeros_like(x); }

// cos(pi x) / x - sin(pi x) / (pi x^2), and near 0 its tangent, so that the slope of the slope is right there too.
Value sinc_slope(Value x, Value, Value d) {
  Value origin = eq(x, 0.0), other = where(origin, 1.0, x);
  return d * where(origin, x * (-kPi * kPi / 3), (cos(other * kPi) - apply<"sinc">(other)) / other);
}

const Unary kUnary[] = {
    {"neg", "Neg(x)", "-x.", kNumber, Result::same, [](Value, Value, Value d) { return -d; }, ""},
    {"abs", "Abs(x)", "Absolute value.", kReal, Result::same, [](Value x, Value, Value d) { return d * sign(x); }, "x"},
    {"sign", "Sign(x)", "-1, 0 or 1, as x is negative, zero or positive.", kRealOrBool, Result::same, zero, ""},
    {"square", "Square(x)", "x * x.", kNumber, Result::same, [](Value x, Value, Value d) { return d * (x * 2.0); },
     "x"},
    {"reciprocal", "Reciprocal(x)", "1 / x.", kRealOrBool, Result::floating,
     [](Value, Value y, Value d) { return -(d * square(y)); }, "y", kWide},
    {"exp", "Exp(x)", "e to the power of x.", kRealOrBool, Result::floating,
     [](Value, Value y, Value d) { return d * y; }, "y", kWide},
    {"exp2", "Exp2(x)", "2 to the power of x.", kRealOrBool, Result::floating,
     [](Value, Value y, Value d) { return d * (y * kLn2); }, "y", kWide},
    {"expm1", "Expm1(x)", "exp(x) - 1, exact near 0.", kRealOrBool, Result::floating,
     [](Value, Value y, Value d) { return d * (y + 1.0); }, "y", kWide},
    {"log", "Log(x)", "Natural logarithm.", kRealOrBool, Result::floating,
     [](Value x, Value, Value d) { return d / x; }, "x", kWide},
    {"log1p", "Log1p(x)", "log(1 + x), exact near 0.", kRealOrBool, Result::floating,
     [](Value x, Value, Value d) { return d / (x + 1.0); }, "x", kWide},
    {"log2", "Log2(x)", "Logarithm to base 2.", kRealOrBool, Result::floating,
     [](Value x, Value, Value d) { return d / (x * kLn2); }, "x", kWide},
    {"log10", "Log10(x)", "Logarithm to base 10.", kRealOrBool, Result::floating,
     [](Value x, Value, Value d) { return d / (x * kLn10); }, "x", kWide},
    {"sqrt", "Sqrt(x)", "Square root.", kRealOrBool, Result::floating,
     [](Value, Value y, Value d) { return d / (y * 2.0); }, "y"},
    {"rsqrt", "Rsqrt(x)", "1 / sqrt(x).", kRealOrBool, Result::floating,
     [](Value, Value y, Value d) { return d * (y * square(y) * -0.5); }, "y", kWide},
    {"sin", "Sin(x)", "Sine of x in radians.", kRealOrBool, Result::floating,
     [](Value x, Value, Value d) { return d * cos(x); }, "x"},
    {"cos", "Cos(x)", "Cosine of x in radians.", kRealOrBool, Result::floating,
     [](Value x, Value, Value d) { return -(d * sin(x)); }, "x"},
    {"tan", "Tan(x)", "Tangent of x in radians.", kRealOrBool, Result::floating,
     [](Value, Value y, Value d) { return d * (square(y) + 1.0); }, "y", kWide},
    {"sinh", "Sinh(x)", "Hyperbolic sine.", kRealOrBool, Result::floating,
     [](Value x, Value, Value d) { return d * cosh(x); }, "x", kWide},
    {"cosh", "Cosh(x)", "Hyperbolic cosine.", kRealOrBool, Result::floating,
     [](Value x, Value, Value d) { return d * sinh(x); }, "x", kWide},
    {"tanh", "Tanh(x)", "Hyperbolic tangent.", kRealOrBool, Result::floating,
     [](Value, Value y, Value d) { return apply<"tanh_grad">(y, d); }, "y"},
    {"asin", "Asin(x)", "Arc sine, in radians, in [-pi/2, pi/2].", kRealOrBool, Result::floating,
     [](Value x, Value, Value d) { return d * rsqrt(1.0 - square(x)); }, "x", kWide},
    {"acos", "Acos(x)", "Arc cosine, in radians, in [0, pi].", kRealOrBool, Result::floating,
     [](Value x, Value, Value d) { return -(d * rsqrt(1.0 - square(x))); }, "x", kWide},
    {"atan", "Atan(x)", "Arc tangent, in radians, in [-pi/2, pi/2].", kRealOrBool, Result::floating,
     [](Value x, Value, Value d) { return d / (square(x) + 1.0); }, "x"},
    {"asinh", "Asinh(x)", "Inverse hyperbolic sine.", kRealOrBool, Result::floating,
     [](Value x, Value, Value d) { return d * rsqrt(square(x) + 1.0); }, "x", kWide},
    {"acosh", "Acosh(x)", "Inverse hyperbolic cosine of x >= 1.", kRealOrBool, Result::floating,
     [](Value x, Value, Value d) { return d * rsqrt((x - 1.0) * (x + 1.0)); }, "x", kWide},
    {"atanh", "Atanh(x)", "Inverse hyperbolic tangent of x in [-1, 1].", kRealOrBool, Result::floating,
     [](Value x, Value, Value d) { return d / (1.0 - square(x)); }, "x", kWide},
    {"sinc", "Sinc(x)", "sin(pi x) / (pi x), and 1 at 0.", kRealOrBool, Result::floating, sinc_slope, "x", kWide},
    {"erfinv", "Erfinv(x)", "The number whose error function is x, for x in [-1, 1].", kRealOrBool, Result::floating,
     [](Value, Value y, Value d) { return d * (exp(square(y)) / kErfSlope); }, "y", kWide},
    {"lgamma", "Lgamma(x)", "Logarithm of the absolute value of the gamma function.", kRealOrBool, Result::floating,
     [](Value x, Value, Value d) { return d * apply<"digamma">(x); }, "x", kWide},
    {"digamma", "Digamma(x)", "Derivative of lgamma.", kRealOrBool, Result::floating,
     [](Value x, Value, Value d) { return d * polygamma(x, 1); }, "x", kWide},
    {"deg2rad", "Deg2rad(x)", "Degrees to radians.", kRealOrBool, Result::floating,
     [](Value, Value, Value d) { return d * (kPi / 180); }, ""},
    {"rad2deg", "Rad2deg(x)", "Radians to degrees.", kRealOrBool, Result::floating,
     [](Value, Value, Value d) { return d * (180 / kPi); }, ""},
    {"erf", "Erf(x)", "Error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.", kRealOrBool,
     Result::floating, [](Value x, Value, Value d) { return d * (exp(-square(x)) * kErfSlope); }, "x"},
    {"erfc", "Erfc(x)", "1 - erf(x), exact for large x.", kRealOrBool, Result::floating,
     [](Value x, Value, Value d) { return d * (exp(-square(x)) * -kErfSlope); }, "x"},
    {"sigmoid", "Sigmoid(x)", "1 / (1 + exp(-x)).", kRealOrBool, Result::floating,
     [](Value, Value y, Value d) { return apply<"sigmoid_grad">(y, d); }, "y"},
    {"relu", "Relu(x)", "max(x, 0); its slope at 0 is 0.", kReal, Result::same,
     [](Value, Value y, Value d) { return apply<"relu_grad">(y, d); }, "y"},
    {"floor", "Floor(x)", "The largest integer that is not above x.", kReal, Result::same, zero, ""},
    {"ceil", "Ceil(x)", "The smallest integer that is not below x.", kReal, Result::same, zero, ""},
    {"trunc", "Trunc(x)", "x without its fraction.", kReal, Result::same, zero, ""},
    {"frac", "Frac(x)", "x minus its whole part; has the sign of x.", kFloating, Result::same,
     [](Value, Value, Value d) { return d; }, ""},
    {"bitwise_not", "BitwiseNot(x)", "All bits turned over; of booleans, whether x is false.", PG_M_INT | PG_M_BOOL,
     Result::same, nullptr, ""},
    {"isnan", "IsNan(x)", "Whether x is not a number.", kRealOrBool, Result::boolean, nullptr, ""},
    {"isinf", "IsInf(x)", "Whether x is infinite.", kRealOrBool, Result::boolean, nullptr, ""},
    {"isposinf", "IsPosInf(x)", "Whether x is infinite and positive.", kRealOrBool, Result::boolean, nullptr, ""},
    {"isneginf", "IsNegInf(x)", "Whether x is infinite and negative.", kRealOrBool, Result::boolean, nullptr, ""},
    {"signbit", "Signbit(x)", "Whether x is negative; of zeros, whether it is -0.", kRealOrBool, Result::boolean,
     nullptr, ""},
    {"isfinite", "IsFinite(x)", "Whether x is neither infinite nor NaN.", kRealOrBool, Result::boolean, nullptr, ""},
    {"logical_not", "LogicalNot(x)", "Whether x is zero.", kAnyDtype, Result::boolean, nullptr, ""},
};

void declare(const Unary& row) {
  uint32_t flags = row.result == Result::floating ? PG_INPUT_PROMOTE : 0;
  OpBuilder& op = declare_op(row.name)
                      .category("elementwise")
                      .doc(row.doc)
                      .expression(row.expression)
                      .input("x", row.dtypes, "any shape", flags)
                      .output("y", "shape of x")
                      .traits(PG_OP_ELEMENTWISE | PG_OP_IN_PLACE)
                      .numeric(row.numeric)
                      .shape([result = row.result](ShapeContext& c) {
                        if (result == Result::floating) check_floating(c, 0);
                        c.out(0).set(result == Result::boolean ? PG_B8 : c.dtype(0), c.shape(0));
                      });
  if (row.result == Result::floating) op.traits(PG_OP_FLOAT_RESULT);
  if (row.dx == nullptr) {
    op.traits(PG_OP_NO_GRAD);
    return;
  }
  op.grad([dx = row.dx](GradContext& g) { g.din(0) = dx(g.in(0), g.out(0), g.dout(0)); });
  for (const char* letter = row.saves; *letter != '\0'; letter++) op.saves(*letter == 'x' ? "x" : "y");
}

const bool declared = [] {
  for (const Unary& row : kUnary) declare(row);
  return true;
}();

}  // namespace
}  // namespace pg::schema_unary
