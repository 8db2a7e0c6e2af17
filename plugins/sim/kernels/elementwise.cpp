// SPDX-License-Identifier: Apache-2.0
#include "perigee/kernels/reference/elementwise.hpp"

#include "perigee/kernels/parameters.hpp"

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
    pg_number value = work.scalar_value();
    integer = pg::reference::whole_of(value);
    real = value.real;
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
  constexpr bool kDivides = std::is_same_v<F, Remainder> || std::is_same_v<F, FloorDiv> || std::is_same_v<F, Fmod>;
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

// By the attributes' names in parameters.hpp.
std::vector<double> parameters(const Work& work) {
  std::vector<double> values;
  const ParameterNames* names = parameter_names(work.op());
  for (int i = 0; names != nullptr && i < kMaxParameters && names->name[i] != nullptr; i++)
    values.push_back(parameter_value(names->name[i], work.out(0).dtype, work.attr<double>(names->name[i])));
  return values;
}

// Functors of floats only, or of integers only, over all types: the others are copied.
template <class F, bool Floats>
struct Of {
  template <class T>
  T operator()(T x, const T* p) const {
    if constexpr (std::is_floating_point_v<T> == Floats)
      return F()(x, p);
    else
      return x;
  }
};

template <class F>
void unary(const Work& work) {
  reference::unary(work.in(0), work.out(0), parameters(work), F());
}

template <class F>
void floats(const Work& work) {
  reference::unary(work.in(0), work.out(0), parameters(work), Of<F, true>());
}

template <class F>
void slope(const Work& work) {
  reference::slope(work.in(0), work.in(1), work.out(0), parameters(work), F());
}

template <class F>
void ternary(const Work& work) {
  Operands in(work, 0, 2);
  reference::ternary(in.a, work.input(1), in.b, work.out(0), parameters(work), F());
}

void gelu(const Work& work) { work.choice("approximate") == "tanh" ? floats<GeluTanh>(work) : floats<Gelu>(work); }
void gelu_grad(const Work& work) {
  work.choice("approximate") == "tanh" ? slope<GeluTanhGrad>(work) : slope<GeluGrad>(work);
}
void round(const Work& work) { work.attr<int64_t>("decimals") != 0 ? floats<RoundTo>(work) : floats<Round>(work); }
void bitwise_not(const Work& work) {
  if (work.in(0).dtype == PG_B8) return unary<LogicalNot>(work);
  reference::unary(work.in(0), work.out(0), {}, Of<BitwiseNot, false>());
}

// Integers only.
template <class F>
struct Whole {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>)
      return x;
    else
      return F()(x, y);
  }
};
template <class F>
void integers(const Work& work) {
  Operands in(work, 0, 1);
  if (!in.swapped) return reference::binary(in.a, in.b, work.out(0), Whole<F>());
  reference::binary(in.b, in.a, work.out(0), [](auto b, auto a) { return Whole<F>()(a, b); });
}

void where(const Work& work) {
  Operands in(work, 1, 2);
  reference::where(work.in(0), in.a, in.b, work.out(0));
}

void masked_fill(const Work& work) {
  reference::masked_fill(work.in(0), work.in(1), work.attr<double>("value"), work.out(0));
}

constexpr uint32_t kWhole = PG_M_INT | PG_M_BOOL;
#define PG_BINARY(name, F) PG_SIM_KERNEL(#name, binary<F>, kAny);
#define PG_BINARY_INT(name, F) PG_SIM_KERNEL(#name, integers<F>, kWhole);
#define PG_UNARY(name, F) PG_SIM_KERNEL(#name, unary<F>, kAny);
#define PG_UNARY_FLOAT(name, F) PG_SIM_KERNEL(#name, floats<F>, kFloats);
#define PG_TERNARY(name, F) PG_SIM_KERNEL(#name, ternary<F>, kNumbers);
#define PG_SLOPE(name, F) PG_SIM_KERNEL(#name, slope<F>, kFloats);
PG_MATH_BINARY(PG_BINARY)
PG_MATH_BINARY_FLOAT(PG_BINARY)
PG_MATH_BINARY_INT(PG_BINARY_INT)
PG_MATH_COMPARE(PG_BINARY)
PG_MATH_UNARY(PG_UNARY)
PG_MATH_PREDICATE(PG_UNARY)
PG_MATH_UNARY_CHEAP(PG_UNARY_FLOAT)
PG_MATH_UNARY_COSTLY(PG_UNARY_FLOAT)
PG_MATH_UNARY_SPECIAL(PG_UNARY_FLOAT)
PG_MATH_TERNARY(PG_TERNARY)
PG_MATH_TERNARY_FLOAT(PG_TERNARY)
PG_MATH_SLOPE(PG_SLOPE)
PG_SIM_KERNEL("floor", floats<Floor>, kAny);
PG_SIM_KERNEL("ceil", floats<Ceil>, kAny);
PG_SIM_KERNEL("trunc", floats<Trunc>, kAny);
PG_SIM_KERNEL("round", round, kAny);
PG_SIM_KERNEL("bitwise_not", bitwise_not, kWhole);
PG_SIM_KERNEL("gelu", gelu, kFloats);
PG_SIM_KERNEL("gelu_grad", gelu_grad, kFloats);
PG_SIM_KERNEL("where", where, kAny);
PG_SIM_KERNEL("masked_fill", masked_fill, kAny);

}  // namespace
}  // namespace sim
