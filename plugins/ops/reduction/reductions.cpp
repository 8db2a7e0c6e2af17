// SPDX-License-Identifier: Apache-2.0
// Reductions over a set of axes whose only attributes are `axes` and `keepdim`: a row each.
#include "reduction.hpp"

namespace pg::schema_reductions {
namespace {

enum class Result { same, sum, floating, boolean };  // sum: int64 for integers and booleans; floating: float32

struct Gradient {
  Value x, y, d;  // y and d with the reduced axes restored: they broadcast against x
  AxisSet axes;
};
using Derivative = Value (*)(const Gradient& g);

struct Reduction {
  const char *name, *doc;
  uint32_t dtypes;
  Result result;
  bool empty_error;  // it has no value for no elements
  Derivative dx;     // NULL: not differentiable
  const char* saves;
  uint32_t numeric;
};

Value extreme(const Gradient& g) {
  static constinit OpRef op("extreme_grad", "axes");
  return Call(g.x.builder, op).input(g.x).input(g.y).input(g.d).set(0, axis_list(g.axes)).emit();
}

Value product_slope(const Gradient& g) {
  static constinit OpRef op("prod_grad", "axes");
  return Call(g.x.builder, op).input(g.x).input(g.d).set(0, axis_list(g.axes)).emit();
}

const Reduction kReductions[] = {
    {"sum", "Sum; of integers and booleans in int64.", kAnyDtype, Result::sum, false,
     [](const Gradient& g) { return expand_like(g.d, g.x); }, "", PG_NUMERIC_FLOAT32},
    {"mean", "Arithmetic mean.", kFloating, Result::same, false,
     [](const Gradient& g) { return expand_like(divide_by_count(g.d, g.x, g.axes, 0), g.x); }, "", PG_NUMERIC_KEEP},
    {"prod", "Product; of integers and booleans in int64.", kRealOrBool, Result::sum, false, product_slope, "x",
     PG_NUMERIC_FLOAT32},
    {"amax", "Largest element; NaN where there is one. Equal largest elements share the gradient.", kRealOrBool,
     Result::same, true, extreme, "xy", PG_NUMERIC_KEEP},
    {"amin", "Smallest element; NaN where there is one. Equal smallest elements share the gradient.", kRealOrBool,
     Result::same, true, extreme, "xy", PG_NUMERIC_KEEP},
    {"logsumexp", "log(sum(exp(x))), without overflow; of integers and booleans in float32.", kRealOrBool,
     Result::floating, false, [](const Gradient& g) { return g.d * exp(g.x - g.y); }, "xy", PG_NUMERIC_FLOAT32},
    {"any", "Whether any element is not zero.", kAnyDtype, Result::boolean, false, nullptr, "", PG_NUMERIC_KEEP},
    {"all", "Whether all elements are not zero.", kAnyDtype, Result::boolean, false, nullptr, "", PG_NUMERIC_KEEP},
};

uint32_t result_dtype(uint32_t dtype, Result result) {
  if (result == Result::boolean) return PG_B8;
  bool lift = result == Result::sum && (dtype_class(dtype) & (PG_M_INT | PG_M_BOOL)) != 0;
  return lift ? PG_I64 : dtype;
}

void infer(ShapeContext& c, const Reduction& row) {
  AxisSet axes = c.check_axes("axes", 0);
  Shape shape = c.shape(0);
  if (row.result == Result::floating) check_floating(c, 0);
  for (uint32_t i = 0; row.empty_error && i < shape.rank; i++) {
    if (axes.has(i) && shape[i].is(0))
      fail_argument(format("%s: axis %u is empty; expected at least one element", c.text(0).c_str(), i + 1));
  }
  c.out(0).set(result_dtype(c.dtype(0), row.result), reduced_shape(shape, axes, c.get<bool>("keepdim")));
}

void differentiate(GradContext& g, const Reduction& row) {
  Value x = g.in(0), y = g.out(0);
  uint32_t rank = x.rank();
  AxisSet axes = axes_of(g, rank);
  bool keepdim = g.get<bool>("keepdim");
  bool uses_y = std::strchr(row.saves, 'y') != nullptr;
  Gradient gradient{x, uses_y ? restore_axes(y, axes, keepdim, rank) : y, restore_axes(g.dout(0), axes, keepdim, rank),
                    axes};
  g.din(0) = row.dx(gradient);
}

void declare(const Reduction& row) {
  uint32_t flags = row.result == Result::floating ? PG_INPUT_PROMOTE : 0;
  OpBuilder& op =
      declare_reduction(row.name, row.doc, row.dtypes, flags).numeric(row.numeric).shape([&row](ShapeContext& c) {
        infer(c, row);
      });
  if (row.dx == nullptr) {
    op.traits(PG_OP_NO_GRAD);
    return;
  }
  if (row.result == Result::floating) op.traits(PG_OP_FLOAT_RESULT);
  op.grad([&row](GradContext& g) { differentiate(g, row); });
  for (const char* letter = row.saves; *letter != '\0'; letter++) op.saves(*letter == 'x' ? "x" : "y");
}

const bool declared = [] {
  for (const Reduction& row : kReductions) declare(row);
  return true;
}();

}  // namespace
}  // namespace pg::schema_reductions
