// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of two tensors, or of a tensor and a number: a row each.
#include "operand.hpp"

namespace pg::schema_binary {
namespace {

// x, y: operands; z: the result; d: its cotangent. Results still have the broadcast shape.
using Derivative = Operand (*)(const Operand& x, const Operand& y, Value z, Value d);

enum class Result { same, floating, boolean };
constexpr uint32_t kWhole = PG_M_INT | PG_M_BOOL;

struct Binary {
  const char *name, *expression, *doc;
  uint32_t dtypes;
  Result result;
  Derivative dx, dy;  // NULL: not differentiable
  const char* saves;  // letters of x, y, z
  const char* role = nullptr;
  uint32_t numeric = PG_NUMERIC_KEEP;
};

Operand pow_dx(const Operand& x, const Operand& y, Value, Value d) {
  if (y.is_number()) {
    if (y.number == 0) return zeros_like(d);
    if (y.number == 2) return d * (x.value * 2.0);
    return d * (y * power(x, y - 1.0));
  }
  // At x = y = 0 the slope is 0, not 0 * 0^-1: there any other base will do, which keeps second derivatives finite too.
  Value origin = logical_and(eq(x.value, 0.0), eq(y.value, 0.0));
  return d * (y * power(where(origin, 1.0, x.value), y - 1.0));
}

Operand pow_dy(const Operand& x, const Operand& y, Value z, Value d) {
  if (x.is_number()) {
    Operand plain = d * (z * logarithm(x));
    return x.number == 0 ? Operand(where(ge(y.value, 0.0), 0.0, plain.value)) : plain;
  }
  // 0^y is 0 (or 1) for all y >= 0: its slope is 0 there, not 0 * log 0.
  Value flat = logical_and(eq(x.value, 0.0), compare<"ge">(y, 0.0));
  return where(flat, 0.0, d * (z * log(where(flat, 1.0, x.value))));
}

// Of the larger (smaller) operand all, of equal ones half each; NaN passes it on.
template <OpName loses>
Operand pick(const Operand& mine, const Operand& other, Value d) {
  Value tie = where(compare<"eq">(mine, other), d * 0.5, d);
  return where(compare<loses>(mine, other), 0.0, tie);
}

Operand circle(const Operand& x, const Operand& y, Value d) { return d / (x * x + y * y); }

Operand zero(const Operand&, const Operand&, Value, Value d) { return zeros_like(d); }

// Of the operand that is the result all: x where they are equal.
template <OpName wins, bool kFirst>
Operand prefer(const Operand& x, const Operand& y, Value d) {
  Value first = compare<wins>(x, y);
  if (!y.is_number()) first = apply<"logical_or">(first, apply<"isnan">(y.value));
  return kFirst ? where(first, d, 0.0) : where(first, 0.0, d);
}

// d times log y; 0 where x is 0 and log y has no value.
Operand xlogy_dx(const Operand& x, const Operand& y, Value, Value d) {
  if (y.is_number()) {
    Value plain = d * std::log(y.number);
    return y.number > 0 ? plain : where(compare<"eq">(x, 0.0), 0.0, plain);
  }
  Value hidden = logical_and(compare<"eq">(x, 0.0), le(y.value, 0.0));
  return where(hidden, 0.0, d * log(where(hidden, 1.0, y.value)));
}

// e^x / (e^x + e^y), without overflow.
Value share(const Operand& x, const Operand& y, double scale) {
  Value off = (x - y).value;
  return sigmoid(scale == 1 ? off : off * scale);
}
const double kLn2 = std::log(2.0);

const Binary kBinary[] = {
    {"add", "Add(x, y)", "Sum of x and y. Of booleans: whether either is true.", kAnyDtype, Result::same,
     [](auto&, auto&, Value, Value d) -> Operand { return d; },
     [](auto&, auto&, Value, Value d) -> Operand { return d; }, "", "accumulate"},
    {"sub", "Sub(x, y)", "x minus y.", kReal | PG_M_COMPLEX, Result::same,
     [](auto&, auto&, Value, Value d) -> Operand { return d; },
     [](auto&, auto&, Value, Value d) -> Operand { return -d; }, ""},
    {"mul", "Mul(x, y)", "Product of x and y. Of booleans: whether both are true.", kAnyDtype, Result::same,
     [](auto&, auto& y, Value, Value d) -> Operand { return d * y; },
     [](auto& x, auto&, Value, Value d) -> Operand { return d * x; }, "xy"},
    {"div", "Div(x, y)", "x divided by y; integers give a floating result.", kAnyDtype, Result::floating,
     [](auto&, auto& y, Value, Value d) -> Operand { return d / y; },
     [](auto&, auto& y, Value z, Value d) -> Operand { return -(d * (z / y)); }, "yz"},
    {"pow", "Pow(x, y)", "x to the power of y. Integers stay integers, and then a negative exponent is an error.",
     kReal | PG_M_COMPLEX, Result::same, pow_dx, pow_dy, "xyz", nullptr, PG_NUMERIC_FLOAT32},
    {"maximum", "Maximum(x, y)",
     "The larger of x and y; NaN where either is NaN. Of equal operands each gets half the gradient.", kRealOrBool,
     Result::same, [](auto& x, auto& y, Value, Value d) -> Operand { return pick<"lt">(x, y, d); },
     [](auto& x, auto& y, Value, Value d) -> Operand { return pick<"lt">(y, x, d); }, "xy"},
    {"minimum", "Minimum(x, y)",
     "The smaller of x and y; NaN where either is NaN. Of equal operands each gets half the gradient.", kRealOrBool,
     Result::same, [](auto& x, auto& y, Value, Value d) -> Operand { return pick<"gt">(x, y, d); },
     [](auto& x, auto& y, Value, Value d) -> Operand { return pick<"gt">(y, x, d); }, "xy"},
    {"remainder", "Remainder(x, y)", "x - y * floor(x / y): has the sign of y. Integer division by zero is an error.",
     kReal, Result::same, [](auto&, auto&, Value, Value d) -> Operand { return d; },
     [](auto& x, auto& y, Value, Value d) -> Operand { return -(d * floor_divide(x, y)); }, "xy"},
    {"floor_div", "FloorDiv(x, y)", "floor(x / y), in the dtype of the operands. Integer division by zero is an error.",
     kReal, Result::same, [](auto&, auto&, Value, Value d) -> Operand { return zeros_like(d); },
     [](auto&, auto&, Value, Value d) -> Operand { return zeros_like(d); }, ""},
    {"atan2", "Atan2(x, y)", "Angle of the point (y, x), that is with x as the ordinate, in radians, in [-pi, pi].",
     kRealOrBool, Result::floating, [](auto& x, auto& y, Value, Value d) -> Operand { return circle(x, y, d) * y; },
     [](auto& x, auto& y, Value, Value d) -> Operand { return -(circle(x, y, d) * x); }, "xy"},
    {"fmod", "Fmod(x, y)", "x - y * trunc(x / y): has the sign of x. Integer division by zero is an error.", kReal,
     Result::same, [](auto&, auto&, Value, Value d) -> Operand { return d; },
     [](auto& x, auto& y, Value, Value d) -> Operand { return -(d * apply<"trunc">((x / y).value)); }, "xy"},
    {"fmax", "Fmax(x, y)",
     "The larger of x and y, and of a number and NaN the number. Of equal operands x gets the gradient.", kRealOrBool,
     Result::same, [](auto& x, auto& y, Value, Value d) -> Operand { return prefer<"ge", true>(x, y, d); },
     [](auto& x, auto& y, Value, Value d) -> Operand { return prefer<"ge", false>(x, y, d); }, "xy"},
    {"fmin", "Fmin(x, y)",
     "The smaller of x and y, and of a number and NaN the number. Of equal operands x gets the gradient.", kRealOrBool,
     Result::same, [](auto& x, auto& y, Value, Value d) -> Operand { return prefer<"le", true>(x, y, d); },
     [](auto& x, auto& y, Value, Value d) -> Operand { return prefer<"le", false>(x, y, d); }, "xy"},
    {"hypot", "Hypot(x, y)", "sqrt(x^2 + y^2), without overflow.", kRealOrBool, Result::floating,
     [](auto& x, auto&, Value z, Value d) -> Operand { return d * (x / z); },
     [](auto&, auto& y, Value z, Value d) -> Operand { return d * (y / z); }, "xyz"},
    {"copysign", "Copysign(x, y)", "The size of x with the sign of y.", kRealOrBool, Result::floating,
     [](auto& x, auto&, Value z, Value d) -> Operand { return d * (sign(x.value) * sign(z)); }, zero, "xz"},
    {"logaddexp", "LogAddExp(x, y)", "log(exp(x) + exp(y)), without overflow.", kFloating, Result::same,
     [](auto& x, auto& y, Value, Value d) -> Operand { return d * share(x, y, 1); },
     [](auto& x, auto& y, Value, Value d) -> Operand { return d * share(y, x, 1); }, "xy", nullptr, PG_NUMERIC_FLOAT32},
    {"logaddexp2", "LogAddExp2(x, y)", "log2(2^x + 2^y), without overflow.", kFloating, Result::same,
     [](auto& x, auto& y, Value, Value d) -> Operand { return d * share(x, y, kLn2); },
     [](auto& x, auto& y, Value, Value d) -> Operand { return d * share(y, x, kLn2); }, "xy", nullptr,
     PG_NUMERIC_FLOAT32},
    {"xlogy", "Xlogy(x, y)", "x log(y); 0 where x is 0 and y is not NaN.", kRealOrBool, Result::floating, xlogy_dx,
     [](auto& x, auto& y, Value, Value d) -> Operand { return d * (x / y); }, "xy", nullptr, PG_NUMERIC_FLOAT32},
    {"bitwise_and", "BitwiseAnd(x, y)", "The bits that x and y both have.", kWhole, Result::same, nullptr, nullptr, ""},
    {"bitwise_or", "BitwiseOr(x, y)", "The bits that x or y has.", kWhole, Result::same, nullptr, nullptr, ""},
    {"bitwise_xor", "BitwiseXor(x, y)", "The bits that exactly one of x and y has.", kWhole, Result::same, nullptr,
     nullptr, ""},
    {"bitwise_left_shift", "LeftShift(x, y)", "x times 2^y; 0 where y is negative or at least as many as x has bits.",
     kInteger, Result::same, nullptr, nullptr, ""},
    {"bitwise_right_shift", "RightShift(x, y)",
     "x / 2^y, rounded down; -1 or 0, by the sign of x, where y is negative or at least as many as x has bits.",
     kInteger, Result::same, nullptr, nullptr, ""},
    {"eq", "Eq(x, y)", "Whether x equals y.", kAnyDtype, Result::boolean, nullptr, nullptr, ""},
    {"ne", "Ne(x, y)", "Whether x differs from y.", kAnyDtype, Result::boolean, nullptr, nullptr, ""},
    {"lt", "Lt(x, y)", "Whether x is less than y.", kRealOrBool, Result::boolean, nullptr, nullptr, ""},
    {"le", "Le(x, y)", "Whether x is less than or equal to y.", kRealOrBool, Result::boolean, nullptr, nullptr, ""},
    {"gt", "Gt(x, y)", "Whether x is greater than y.", kRealOrBool, Result::boolean, nullptr, nullptr, ""},
    {"ge", "Ge(x, y)", "Whether x is greater than or equal to y.", kRealOrBool, Result::boolean, nullptr, nullptr, ""},
    {"logical_and", "LogicalAnd(x, y)", "Whether x and y are both not zero.", kAnyDtype, Result::boolean, nullptr,
     nullptr, ""},
    {"logical_or", "LogicalOr(x, y)", "Whether x or y is not zero.", kAnyDtype, Result::boolean, nullptr, nullptr, ""},
    {"logical_xor", "LogicalXor(x, y)", "Whether exactly one of x and y is not zero.", kAnyDtype, Result::boolean,
     nullptr, nullptr, ""},
};

void infer(ShapeContext& c, Result result) {
  uint32_t some = c.has(0) ? 0 : 1;
  c.need(c.has(some), "x and y are both numbers; one must be a tensor");
  if (c.has(0) && c.has(1)) c.check_same_dtype(1, 0);
  if (result == Result::floating)
    c.need((dtype_class(c.dtype(some)) & (PG_M_FLOAT | PG_M_COMPLEX)) != 0, "%s is %s; expected a floating dtype",
           c.name(some), dtype_name(c.dtype(some)));
  Shape shape = c.has(0) && c.has(1) ? broadcast(c.shape(0), c.shape(1)) : c.shape(some);
  c.out(0).set(result == Result::boolean ? PG_B8 : c.dtype(some), shape);
}

void differentiate(GradContext& g, Derivative dx, Derivative dy) {
  Value d = g.dout(0);
  Operand x = g.has(0) ? Operand(g.in(0)) : Operand(g.number());
  Operand y = g.has(1) ? Operand(g.in(1)) : Operand(g.number());
  if (g.needed(0)) g.din(0) = sum_like(dx(x, y, g.out(0), d).value, g.in(0));
  if (g.needed(1)) g.din(1) = sum_like(dy(x, y, g.out(0), d).value, g.in(1));
}

void declare(const Binary& row) {
  uint32_t promoted = PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL | PG_INPUT_HOST_SCALAR;
  OpBuilder& op = declare_op(row.name)
                      .category("elementwise")
                      .doc(row.doc)
                      .expression(row.expression)
                      .role(row.role)
                      .input("x", row.dtypes, "any shape, or a number", promoted)
                      .input("y", row.dtypes, "a shape that broadcasts with x, or a number", promoted)
                      .scalar()
                      .output("z", "the shape that x and y broadcast to")
                      .traits(PG_OP_ELEMENTWISE | PG_OP_IN_PLACE)
                      .numeric(row.numeric)
                      .shape([result = row.result](ShapeContext& c) { infer(c, result); });
  if (row.result == Result::floating) op.traits(PG_OP_FLOAT_RESULT);
  if (row.dx == nullptr) {
    op.traits(PG_OP_NO_GRAD);
    return;
  }
  op.grad([dx = row.dx, dy = row.dy](GradContext& g) { differentiate(g, dx, dy); });
  for (const char* letter = row.saves; *letter != '\0'; letter++)
    op.saves(*letter == 'x' ? "x" : *letter == 'y' ? "y" : "z");
}

const bool declared = [] {
  for (const Binary& row : kBinary) declare(row);
  return true;
}();

}  // namespace
}  // namespace pg::schema_binary
