// SPDX-License-Identifier: Apache-2.0
#include "perigee/kernels/reference/elementwise.hpp"

#include "../launch.hpp"

namespace sim {
namespace {

using namespace pg::math;
namespace reference = pg::reference;

// An input, or the number given in its place, unrounded, in memory that `number` provides.
struct Operands {
  explicit Operands(const Work& work, uint32_t first, uint32_t second) {
    a = work.input(first);
    b = work.input(second);
    Operand& absent = a ? b : a;
    if (absent) return;
    uint32_t like = (a ? a : b).dtype;
    bool whole = pg::dtype_class(like) != PG_M_FLOAT;
    double value = work.scalar_value();
    integer = pg::reference::truncate(value);
    real = value;
    absent.dtype = whole ? PG_I64 : PG_F64;
    absent.data = whole ? static_cast<void*>(&integer) : &real;
    if (!a) swapped = true;
  }
  Operand a, b;
  int64_t integer = 0;
  double real = 0;
  bool swapped = false;  // the number is on the left
};

// Integers divide by no zero and have no negative powers.
template <class F>
void check_divisor(const Operand& a, const Operand& b, const Operand& y) {
  constexpr bool kDivides = std::is_same_v<F, Remainder> || std::is_same_v<F, FloorDiv>;
  if constexpr (kDivides || std::is_same_v<F, Pow>) {
    if (pg::dtype_class(y.dtype) == PG_M_FLOAT || pg::dtype_class(a.dtype) == PG_M_FLOAT) return;
    for (int64_t value : pg::reference::read<int64_t>(reference::broadcast(b, y.shape))) {
      if (kDivides && value == 0) pg::fail_argument("integer division by zero");
      if (!kDivides && value < 0) pg::fail_argument("integers cannot be raised to a negative integer power");
    }
  }
}

template <class F>
void binary(const Work& work) {
  Operands in(work, 0, 1);
  check_divisor<F>(in.a, in.b, work.out(0));
  if (!in.swapped) return reference::binary(in.a, in.b, work.out(0), F());
  // The tensor's dtype decides what is computed in.
  reference::binary(in.b, in.a, work.out(0), [](auto b, auto a) { return F()(a, b); });
}

template <class F>
void unary(const Work& work) {
  reference::unary(work.in(0), work.out(0), {}, F());
}

void clamp(const Work& work) {
  reference::unary(work.in(0), work.out(0), {work.attr<double>("min"), work.attr<double>("max")}, Clamp());
}

void leaky_relu(const Work& work) {
  reference::unary(work.in(0), work.out(0), {work.attr<double>("negative_slope")}, LeakyRelu());
}

void elu(const Work& work) { reference::unary(work.in(0), work.out(0), {work.attr<double>("alpha")}, Elu()); }

void gelu(const Work& work) {
  if (work.choice("approximate") == "tanh")
    unary<GeluTanh>(work);
  else
    unary<Gelu>(work);
}

void where(const Work& work) {
  Operands in(work, 1, 2);
  reference::where(work.in(0), in.a, in.b, work.out(0));
}

void masked_fill(const Work& work) {
  reference::masked_fill(work.in(0), work.in(1), work.attr<double>("value"), work.out(0));
}

// Integers are whole already.
template <class F>
struct Rounded {
  template <class T>
  T operator()(T x, const T* p) const {
    if constexpr (std::is_floating_point_v<T>)
      return F()(x, p);
    else
      return x;
  }
};

#define PG_BINARY(name, F) PG_SIM_KERNEL(#name, binary<F>, kAny);
#define PG_UNARY(name, F) PG_SIM_KERNEL(#name, unary<F>, kAny);
#define PG_UNARY_FLOAT(name, F) PG_SIM_KERNEL(#name, unary<F>, kFloats);
PG_MATH_BINARY(PG_BINARY)
PG_MATH_BINARY_FLOAT(PG_BINARY)
PG_MATH_COMPARE(PG_BINARY)
PG_UNARY(neg, Neg)
PG_UNARY(abs, Abs)
PG_UNARY(sign, Sign)
PG_UNARY(square, Square)
PG_UNARY(relu, Relu)
PG_UNARY(isnan, IsNan)
PG_UNARY(isinf, IsInf)
PG_UNARY(isfinite, IsFinite)
PG_UNARY(logical_not, LogicalNot)
PG_UNARY(floor, Rounded<Floor>)
PG_UNARY(ceil, Rounded<Ceil>)
PG_UNARY(round, Rounded<Round>)
PG_UNARY(trunc, Rounded<Trunc>)
PG_UNARY_FLOAT(reciprocal, Reciprocal)
PG_UNARY_FLOAT(exp, Exp)
PG_UNARY_FLOAT(expm1, Expm1)
PG_UNARY_FLOAT(log, Log)
PG_UNARY_FLOAT(log1p, Log1p)
PG_UNARY_FLOAT(log2, Log2)
PG_UNARY_FLOAT(log10, Log10)
PG_UNARY_FLOAT(sqrt, Sqrt)
PG_UNARY_FLOAT(rsqrt, Rsqrt)
PG_UNARY_FLOAT(sin, Sin)
PG_UNARY_FLOAT(cos, Cos)
PG_UNARY_FLOAT(tan, Tan)
PG_UNARY_FLOAT(sinh, Sinh)
PG_UNARY_FLOAT(cosh, Cosh)
PG_UNARY_FLOAT(tanh, Tanh)
PG_UNARY_FLOAT(asin, Asin)
PG_UNARY_FLOAT(acos, Acos)
PG_UNARY_FLOAT(atan, Atan)
PG_UNARY_FLOAT(erf, Erf)
PG_UNARY_FLOAT(erfc, Erfc)
PG_UNARY_FLOAT(sigmoid, Sigmoid)
PG_UNARY_FLOAT(silu, Silu)
PG_UNARY_FLOAT(softplus, Softplus)
PG_SIM_KERNEL("clamp", clamp, kAny);
PG_SIM_KERNEL("leaky_relu", leaky_relu, kFloats);
PG_SIM_KERNEL("elu", elu, kFloats);
PG_SIM_KERNEL("gelu", gelu, kFloats);
PG_SIM_KERNEL("where", where, kAny);
PG_SIM_KERNEL("masked_fill", masked_fill, kAny);

}  // namespace
}  // namespace sim
