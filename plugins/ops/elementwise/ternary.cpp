// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of three tensors: lerp, addcmul, addcdiv.
#include "operand.hpp"

namespace pg::schema_ternary {
namespace {

void infer(ShapeContext& c) {
  c.check_same_dtype(1, 0);
  Shape shape = broadcast(c.shape(0), c.shape(1));
  if (c.has(2)) {
    c.check_same_dtype(2, 0);
    shape = broadcast(shape, c.shape(2));
  }
  c.out(0).set(c.dtype(0), shape);
}

OpBuilder& declare(const char* name, const char* expression, const char* doc, uint32_t dtypes) {
  return declare_op(name)
      .category("elementwise")
      .doc(doc)
      .expression(expression)
      .input("x", dtypes, "any shape", PG_INPUT_PROMOTE)
      .output("z", "the shape that all broadcast to")
      .traits(PG_OP_ELEMENTWISE | PG_OP_IN_PLACE)
      .shape(infer);
}

OpBuilder& declare_product(const char* name, const char* expression, const char* doc, uint32_t dtypes) {
  return declare(name, expression, doc, dtypes)
      .input("a", dtypes, "a shape that broadcasts", PG_INPUT_PROMOTE)
      .input("b", dtypes, "a shape that broadcasts", PG_INPUT_PROMOTE)
      .attr<double>("value", 1, "factor of what is added")
      .runtime()
      .saves("a", "b");
}

const bool declared = [] {
  declare("lerp", "Lerp(x, y, weight)", "x + weight * (y - x): x for weight 0, y for weight 1.", kFloating)
      .input("y", kFloating, "a shape that broadcasts", PG_INPUT_PROMOTE)
      .input("weight", kFloating, "a shape that broadcasts, or a number",
             PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL | PG_INPUT_HOST_SCALAR)
      .scalar()
      .saves("x", "y", "weight")
      .grad([](GradContext& g) {
        Value d = g.dout(0), x = g.in(0), y = g.in(1);
        Operand weight = g.has(2) ? Operand(g.in(2)) : Operand(g.number());
        if (g.needed(0)) g.din(0) = sum_like((d * (Operand(1.0) - weight)).value, x);
        if (g.needed(1)) g.din(1) = sum_like((d * weight).value, y);
        if (g.needed(2)) g.din(2) = sum_like(d * (y - x), g.in(2));
      });

  declare_product("addcmul", "Addcmul(x, a, b; value)", "x + value * a * b.", kReal).grad([](GradContext& g) {
    Value d = g.dout(0);
    double value = g.get<double>("value");
    if (g.needed(0)) g.din(0) = sum_like(d, g.in(0));
    if (g.needed(1)) g.din(1) = sum_like(d * g.in(2) * value, g.in(1));
    if (g.needed(2)) g.din(2) = sum_like(d * g.in(1) * value, g.in(2));
  });

  declare_product("addcdiv", "Addcdiv(x, a, b; value)", "x + value * a / b.", kFloating).grad([](GradContext& g) {
    Value d = g.dout(0), a = g.in(1), b = g.in(2);
    double value = g.get<double>("value");
    if (g.needed(0)) g.din(0) = sum_like(d, g.in(0));
    if (g.needed(1)) g.din(1) = sum_like(d / b * value, a);
    if (g.needed(2)) g.din(2) = sum_like(d * (a / square(b)) * -value, b);
  });
  return true;
}();

}  // namespace
}  // namespace pg::schema_ternary
