// SPDX-License-Identifier: Apache-2.0
// What is done to all gradients of a model between backward and the step, in one launch: unscaling with a check, the
// norm of all, scaling and clamping.
#include <cmath>

#include "groups.hpp"

namespace pg::schema_gradients {
namespace {

void check_some(const ShapeContext& c) {
  c.need(!c.group(0).empty(), "%s is empty; expected at least one tensor", c.name(0));
  for (const pg_tensor* x : c.group(0)) c.need(x != nullptr, "%s has a hole", c.name(0));
}

// float64 where a tensor is, else float32: 16-bit floats are not what sums are kept in.
uint32_t sum_dtype(const ShapeContext& c) {
  for (const pg_tensor* x : c.group(0))
    if (dtype_of(*x) == PG_F64) return PG_F64;
  return PG_F32;
}

// In float32 or wider, whatever x is stored in.
void multiply(Value x, Value factor) {
  static constinit OpRef mul("mul"), copy("copy");
  if (x.dtype() == PG_F32 || x.dtype() == PG_F64) {
    Call(x.builder, mul).input(x).input(cast(factor, x.dtype())).emit(PG_EMIT_IN_PLACE);
  } else {
    Call(x.builder, copy).input(x).input(cast(x, PG_F32) * cast(factor, PG_F32)).emit(PG_EMIT_IN_PLACE);
  }
}

PG_OP("unscale_all")
    .category("optimizer")
    .doc(
        "Multiplies all tensors by inv_scale, in place, and tells whether an element of any was infinite or NaN before "
        "(loss scaling: Micikevicius et al. 2018).")
    .input("xs", kFloating, "any shapes", kUpdated)
    .attr<double>("inv_scale", 1, "the factor")
    .runtime()
    .output("found_inf", "[] bool")
    .traits(PG_OP_NO_GRAD)
    .shape([](ShapeContext& c) {
      check_some(c);
      c.out(0).set(PG_B8, Shape{});
    })
    .decompose([](ExpandContext& e) {
      static constinit OpRef all_finite("all_finite"), mul("mul", "scalar");
      std::vector<Value> xs = e.group(0);
      e.out(0) = logical_not(Call(e.builder(), all_finite).inputs(xs).emit());
      for (Value x : xs)
        Call(e.builder(), mul).input(x).input(Value{}).number(0, 1, e.get<double>("inv_scale")).emit(PG_EMIT_IN_PLACE);
    });

PG_OP("total_norm")
    .category("optimizer")
    .doc(
        "(sum |x|^p)^(1/p) over all elements of all tensors; p = inf: the largest |x|. Summed in float64 on the CPU, "
        "else "
        "in float32 or wider.")
    .input("xs", kFloating, "any shapes", PG_INPUT_VARIADIC)
    .attr<double>("p", 2, "above 0, or inf")
    .output("y", "[]: float32; float64 where a tensor is")
    .traits(PG_OP_NO_GRAD | PG_OP_REDUCTION)
    .shape([](ShapeContext& c) {
      check_some(c);
      double p = c.get<double>("p");
      c.need(p > 0, "p is %g; expected a number above 0, or inf", p);
      c.out(0).set(sum_dtype(c), Shape{});
    })
    .decompose([](ExpandContext& e) {
      double p = e.get<double>("p");
      std::vector<Value> xs = e.group(0);
      uint32_t dtype = PG_F32;
      for (Value x : xs)
        if (x.dtype() == PG_F64) dtype = PG_F64;
      Value total;
      for (Value x : xs) {
        Value size = abs(cast(x, dtype));
        Value part;
        if (!std::isinf(p)) {
          part = sum(p == 1 ? size : p == 2 ? square(size) : pow(size, p));
        } else {
          bool empty = false;
          for (uint32_t i = 0; i < x.rank(); i++) empty = empty || x.dim(i) == 0;
          part = empty ? sum(size) : amax(size);
        }
        total = !total ? part : std::isinf(p) ? maximum(total, part) : total + part;
      }
      e.out(0) = std::isinf(p) || p == 1 ? total : p == 2 ? sqrt(total) : pow(total, 1 / p);
    });

PG_OP("scale_all")
    .category("optimizer")
    .doc("Multiplies all tensors by one factor, in place.")
    .input("xs", kFloating, "any shapes", kUpdated)
    .input("factor", kFloating, "[]")
    .traits(PG_OP_NO_GRAD)
    .shape([](ShapeContext& c) {
      check_some(c);
      c.check_rank(1, 0, 0);
    })
    .decompose([](ExpandContext& e) {
      for (Value x : e.group(0)) multiply(x, e.in(1));
    });

PG_OP("clamp_all")
    .category("optimizer")
    .doc("Limits every element of all tensors to [min, max], in place. NaN stays.")
    .input("xs", kFloating, "any shapes", kUpdated)
    .attr<double>("min", -INFINITY, "lower limit")
    .runtime()
    .attr<double>("max", INFINITY, "upper limit")
    .runtime()
    .traits(PG_OP_NO_GRAD)
    .shape(check_some)
    .decompose([](ExpandContext& e) {
      static constinit OpRef op("clamp", "min", "max");
      for (Value x : e.group(0))
        Call(e.builder(), op).input(x).set(0, e.get<double>("min")).set(1, e.get<double>("max")).emit(PG_EMIT_IN_PLACE);
    });

}  // namespace
}  // namespace pg::schema_gradients
