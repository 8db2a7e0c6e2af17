// SPDX-License-Identifier: Apache-2.0
// Operators without kernels.
#include "perigee/functions.hpp"
#include "perigee/op.hpp"

namespace {

using namespace pg;

OpBuilder& declare(const char* name, const char* expression) {
  return declare_op(name).category("test").doc("For tests.").traits(PG_OP_ELEMENTWISE).expression(expression);
}

void same_as_first(ShapeContext& c) { c.out(0) = c.in(0); }
void broadcast_of_two(ShapeContext& c) {
  c.check_same_dtype(1, 0);
  c.out(0).set(c.dtype(0), broadcast(c.shape(0), c.shape(1)));
}
void broadcast_with_mask(ShapeContext& c) { c.out(0).set(c.dtype(0), broadcast(c.shape(0), c.shape(1))); }

OpBuilder& of_one(const char* name, const char* expression, uint32_t dtypes = kFloating) {
  return declare(name, expression)
      .input("x", dtypes, "any shape")
      .output("z", "shape of x")
      .traits(PG_OP_IN_PLACE)
      .shape(same_as_first);
}
OpBuilder& of_two(const char* name, const char* expression, uint32_t dtypes = kReal) {
  return declare(name, expression)
      .input("x", dtypes, "any shape", PG_INPUT_PROMOTE)
      .input("y", dtypes, "a shape that broadcasts", PG_INPUT_PROMOTE)
      .output("z", "the shape that both broadcast to")
      .shape(broadcast_of_two);
}

const bool declared = [] {
  of_one("ex_copy", "x", kAnyDtype);
  of_one("ex_softcap", "Mul(cap, Tanh(Div(x, cap)))")
      .attr<double>("cap", 30, "the limit")
      .runtime()
      .saves("z")
      .grad([](GradContext& g) { g.din(0) = g.dout(0) * (1.0 - square(g.out(0) / g.get<double>("cap"))); });
  of_one("ex_shared", "Mul(Exp(x), Sub(1, Exp(x)))");
  of_one("ex_powers", "Add(Add(Pow(x, 2), Pow(x, 3)), Add(Pow(Abs(x), 0.5), Pow(x, 1.5)))");
  of_one("ex_chosen", "exact ? Mul(x, Erf(x)) : Tanh(x)").attr<bool>("exact", false, "which");
  of_one("ex_leaky", "Select(Gt(x, 0), x, Mul(x, 0.1))");
  of_one("ex_long",
         "Add(Add(Add(Sin(x), Cos(x)), Add(Neg(x), Square(x))), Add(Sub(Relu(x), Sigmoid(x)), Clamp(x; -0.5, 0.5)))");
  of_one("ex_decay", "Exp(Neg(x))", kReal);
  of_two("ex_fold", "Sub(Mul(x, y), Maximum(x, y))");
  of_two("ex_remainder", "Add(Remainder(x, y), 1)");
  of_two("ex_power", "Neg(Pow(x, y))");
  of_two("ex_gate", "Mul(x, Sigmoid(y))", kFloating);
  declare("ex_less", "Lt(Square(x), y)")
      .input("x", kReal, "any shape", PG_INPUT_PROMOTE)
      .input("y", kReal, "a shape that broadcasts", PG_INPUT_PROMOTE)
      .output("z", "the shape that both broadcast to")
      .shape([](ShapeContext& c) { c.out(0).set(PG_B8, broadcast(c.shape(0), c.shape(1))); });
  declare("ex_masked", "Mul(Select(m, x, 0.3), m)")
      .input("x", kReal, "any shape")
      .input("m", kBool, "a shape that broadcasts")
      .output("z", "the shape that both broadcast to")
      .shape(broadcast_with_mask);
  declare("ex_both", "LogicalAnd(BitwiseNot(m), Add(m, n))")
      .input("m", kBool, "any shape")
      .input("n", kBool, "a shape that broadcasts")
      .output("z", "the shape that both broadcast to")
      .shape(broadcast_with_mask);
  declare("ex_scaled", "Add(Mul(x, y), y)")
      .input("x", kReal, "any shape, or a number", PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL | PG_INPUT_HOST_SCALAR)
      .input("y", kReal, "any shape, or a number", PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL | PG_INPUT_HOST_SCALAR)
      .scalar()
      .output("z", "the shape that both broadcast to")
      .shape([](ShapeContext& c) {
        uint32_t some = c.has(0) ? 0 : 1;
        c.out(0).set(c.dtype(some), c.has(0) && c.has(1) ? broadcast(c.shape(0), c.shape(1)) : c.shape(some));
      });
  return true;
}();

}  // namespace

using Expressions = pg::Provides<pg::OpTable>;
PG_PLUGIN(Expressions, "expressions", "1.0.0", "ops");
