// SPDX-License-Identifier: Apache-2.0
#include "perigee/functions.hpp"

namespace pg {

Value apply_op(const OpRef& op, std::initializer_list<Value> inputs) {
  Call call(inputs.begin()->builder, op);
  for (Value input : inputs) call.input(input);
  return call.emit();
}

int scalar_kind(Value x, double number) {
  bool integral = (dtype_class(x.dtype()) & (PG_M_INT | PG_M_BOOL)) != 0;
  return integral && number == __builtin_trunc(number) ? PG_SCALAR_INT : PG_SCALAR_FLOAT;
}
Value apply_right(const OpRef& op, Value x, double number) {
  return Call(x.builder, op).input(x).input(Value{}).number(0, 1, number, scalar_kind(x, number)).emit();
}
Value apply_left(const OpRef& op, double number, Value x) {
  return Call(x.builder, op).input(Value{}).input(x).number(0, 0, number, scalar_kind(x, number)).emit();
}

#define PG_BINARY_FUNCTION(function, name)                                        \
  Value function(Value x, Value y) { return apply<name>(x, y); }                  \
  Value function(Value x, double number) { return apply_right<name>(x, number); } \
  Value function(double number, Value x) { return apply_left<name>(number, x); }
PG_BINARY_FUNCTION(operator+, "add")
PG_BINARY_FUNCTION(operator-, "sub")
PG_BINARY_FUNCTION(operator*, "mul")
PG_BINARY_FUNCTION(operator/, "div")
PG_BINARY_FUNCTION(pow, "pow")
PG_BINARY_FUNCTION(maximum, "maximum")
PG_BINARY_FUNCTION(minimum, "minimum")
PG_BINARY_FUNCTION(floor_div, "floor_div")
PG_BINARY_FUNCTION(eq, "eq")
PG_BINARY_FUNCTION(ne, "ne")
PG_BINARY_FUNCTION(lt, "lt")
PG_BINARY_FUNCTION(le, "le")
PG_BINARY_FUNCTION(gt, "gt")
PG_BINARY_FUNCTION(ge, "ge")
PG_BINARY_FUNCTION(logical_and, "logical_and")
#undef PG_BINARY_FUNCTION

#define PG_UNARY_FUNCTION(function) \
  Value function(Value x) { return apply<#function>(x); }
Value operator-(Value x) { return apply<"neg">(x); }
PG_UNARY_FUNCTION(abs)
PG_UNARY_FUNCTION(sign)
PG_UNARY_FUNCTION(square)
PG_UNARY_FUNCTION(reciprocal)
PG_UNARY_FUNCTION(exp)
PG_UNARY_FUNCTION(log)
PG_UNARY_FUNCTION(sqrt)
PG_UNARY_FUNCTION(rsqrt)
PG_UNARY_FUNCTION(sin)
PG_UNARY_FUNCTION(cos)
PG_UNARY_FUNCTION(sinh)
PG_UNARY_FUNCTION(cosh)
PG_UNARY_FUNCTION(tanh)
PG_UNARY_FUNCTION(erf)
PG_UNARY_FUNCTION(sigmoid)
PG_UNARY_FUNCTION(relu)
PG_UNARY_FUNCTION(floor)
PG_UNARY_FUNCTION(isfinite)
PG_UNARY_FUNCTION(logical_not)
PG_UNARY_FUNCTION(clone)
PG_UNARY_FUNCTION(zeros_like)
PG_UNARY_FUNCTION(ones_like)
#undef PG_UNARY_FUNCTION

Value reduce(const OpRef& op, Value x, const pg_ints& axes, bool keepdim) {
  return Call(x.builder, op).input(x).set(0, axes).set(1, keepdim).emit();
}
Value along(const OpRef& op, Value x, int64_t axis) { return Call(x.builder, op).input(x).set(0, axis).emit(); }

Value sum_like(Value dy, Value x) { return same_dims(dy.meta(), x.meta()) ? dy : apply<"sum_like">(dy, x); }
Value expand_like(Value x, Value like) { return same_dims(x.meta(), like.meta()) ? x : apply<"expand_like">(x, like); }
Value reshape_like(Value x, Value like) {
  return same_dims(x.meta(), like.meta()) ? x : apply<"reshape_like">(x, like);
}
Value reshape(Value x, const pg_ints& shape) {
  static constinit OpRef op("reshape", "shape");
  return Call(x.builder, op).input(x).set(0, shape).emit();
}
Value permute(Value x, const pg_ints& axes) {
  static constinit OpRef op("permute", "axes");
  return Call(x.builder, op).input(x).set(0, axes).emit();
}
Value unsqueeze(Value x, int64_t axis) {
  static constinit OpRef op("unsqueeze", "axis");
  return Call(x.builder, op).input(x).set(0, axis).emit();
}
Value squeeze(Value x, const pg_ints& axes) {
  static constinit OpRef op("squeeze", "axes");
  return Call(x.builder, op).input(x).set(0, axes).emit();
}
Value cast(Value x, uint32_t dtype) {
  if (x.dtype() == dtype) return x;
  static constinit OpRef op("cast", "dtype");
  return Call(x.builder, op).input(x).set(0, dtype).emit();
}
void assign(Value target, Value value) {
  static constinit OpRef op("copy");
  Call(target.builder, op).input(target).input(value).emit(PG_EMIT_IN_PLACE);
}
Value where(Value condition, Value x, Value y) { return apply<"where">(condition, x, y); }
Value where(Value condition, Value x, double y) {
  static constinit OpRef op("where", "scalar");
  return Call(x.builder, op).input(condition).input(x).input(Value{}).number(0, 2, y, scalar_kind(x, y)).emit();
}
Value where(Value condition, double x, Value y) {
  static constinit OpRef op("where", "scalar");
  return Call(y.builder, op).input(condition).input(Value{}).input(y).number(0, 1, x, scalar_kind(y, x)).emit();
}
Value sum(Value x, const pg_ints& axes, bool keepdim) { return reduce<"sum">(x, axes, keepdim); }
Value mean(Value x, const pg_ints& axes, bool keepdim) { return reduce<"mean">(x, axes, keepdim); }
Value amax(Value x, const pg_ints& axes, bool keepdim) { return reduce<"amax">(x, axes, keepdim); }
Value cumsum(Value x, int64_t axis) { return along<"cumsum">(x, axis); }
Value softmax(Value x, int64_t axis) { return along<"softmax">(x, axis); }
Value log_softmax(Value x, int64_t axis) { return along<"log_softmax">(x, axis); }
Value matmul(Value x, Value y, bool transpose_x, bool transpose_y) {
  static constinit OpRef op("matmul", "transpose_x", "transpose_y");
  return Call(x.builder, op).input(x).input(y).set(0, transpose_x).set(1, transpose_y).emit();
}
Value gather(Value x, Value index, int64_t axis) {
  static constinit OpRef op("gather", "axis");
  return Call(x.builder, op).input(x).input(index).set(0, axis).emit();
}

}  // namespace pg
