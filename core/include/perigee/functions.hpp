// SPDX-License-Identifier: Apache-2.0
// perigee/functions.hpp: the common operators as C++ functions on pg::Value. Any other operator is an OpRef and a Call.
#pragma once

#include "perigee/emit.hpp"

namespace pg {

// One or more tensors in, one out, all attributes at their defaults. (Each instance of these functions holds its own
// looked-up operator.)
Value apply_op(const OpRef& op, std::initializer_list<Value> inputs);
template <OpName name, class... Values>
Value apply(Value first, Values... rest) {
  static constinit OpRef op(name.text);
  return apply_op(op, {first, rest...});
}

// The kind of a number next to x: a whole number leaves an integer tensor its dtype. Next to a floating tensor it is
// always FLOAT, so that a number which happens to be whole makes no signature of its own.
int scalar_kind(Value x, double number);

// x `name` number, number `name` x.
Value apply_right(const OpRef& op, Value x, double number);
Value apply_left(const OpRef& op, double number, Value x);
template <OpName name>
Value apply_right(Value x, double number) {
  static constinit OpRef op(name.text, "scalar");
  return apply_right(op, x, number);
}
template <OpName name>
Value apply_left(double number, Value x) {
  static constinit OpRef op(name.text, "scalar");
  return apply_left(op, number, x);
}

// sdk/functions.cpp names the operator of each.
#define PG_BINARY_FUNCTION(function)      \
  Value function(Value x, Value y);       \
  Value function(Value x, double number); \
  Value function(double number, Value x);
PG_BINARY_FUNCTION(operator+)
PG_BINARY_FUNCTION(operator-)
PG_BINARY_FUNCTION(operator*)
PG_BINARY_FUNCTION(operator/)
PG_BINARY_FUNCTION(pow)
PG_BINARY_FUNCTION(maximum)
PG_BINARY_FUNCTION(minimum)
PG_BINARY_FUNCTION(floor_div)
PG_BINARY_FUNCTION(eq)
PG_BINARY_FUNCTION(ne)
PG_BINARY_FUNCTION(lt)
PG_BINARY_FUNCTION(le)
PG_BINARY_FUNCTION(gt)
PG_BINARY_FUNCTION(ge)
PG_BINARY_FUNCTION(logical_and)
#undef PG_BINARY_FUNCTION

Value operator-(Value x);
Value abs(Value x);
Value sign(Value x);
Value square(Value x);
Value reciprocal(Value x);
Value exp(Value x);
Value log(Value x);
Value sqrt(Value x);
Value rsqrt(Value x);
Value sin(Value x);
Value cos(Value x);
Value sinh(Value x);
Value cosh(Value x);
Value tanh(Value x);
Value erf(Value x);
Value sigmoid(Value x);
Value relu(Value x);
Value floor(Value x);
Value isfinite(Value x);
Value logical_not(Value x);
Value clone(Value x);
Value zeros_like(Value x);
Value ones_like(Value x);

// ---- shapes ----

// dy summed to the shape of x: undoes broadcasting. Free where the shapes are the same.
Value sum_like(Value dy, Value x);
Value expand_like(Value x, Value like);
Value reshape_like(Value x, Value like);
Value reshape(Value x, const pg_ints& shape);
Value permute(Value x, const pg_ints& axes);
Value unsqueeze(Value x, int64_t axis);
Value squeeze(Value x, const pg_ints& axes);
Value cast(Value x, uint32_t dtype);
// Writes `value`, broadcast and cast, into `target`: what optimizers do to parameters and state.
void assign(Value target, Value value);
Value where(Value condition, Value x, Value y);
Value where(Value condition, Value x, double y);
Value where(Value condition, double x, Value y);

// ---- reductions: no axes means all of them ----

Value reduce(const OpRef& op, Value x, const pg_ints& axes, bool keepdim);
template <OpName name>
Value reduce(Value x, const pg_ints& axes = {}, bool keepdim = false) {
  static constinit OpRef op(name.text, "axes", "keepdim");
  return reduce(op, x, axes, keepdim);
}
Value sum(Value x, const pg_ints& axes = {}, bool keepdim = false);
Value mean(Value x, const pg_ints& axes = {}, bool keepdim = false);
Value amax(Value x, const pg_ints& axes = {}, bool keepdim = false);
// Along one axis.
Value along(const OpRef& op, Value x, int64_t axis);
template <OpName name>
Value along(Value x, int64_t axis) {
  static constinit OpRef op(name.text, "axis");
  return along(op, x, axis);
}
Value cumsum(Value x, int64_t axis);
Value softmax(Value x, int64_t axis);
Value log_softmax(Value x, int64_t axis);

// ---- matrices and indices ----

// transpose_*: the last two axes of that operand swapped.
Value matmul(Value x, Value y, bool transpose_x = false, bool transpose_y = false);
Value gather(Value x, Value index, int64_t axis);

}  // namespace pg
