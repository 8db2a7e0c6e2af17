// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/primitives.hpp: the primitives that scalar expressions are made of (perigee/scalar.hpp): the functors
// of math.hpp and activations.hpp, by number. What devices hold by primitive (loops, cases of a switch) is made from
// this table:
//
//   #define PG_ROW(number, Op, form, ...) if constexpr (form == kBinary) fill<pg::math::Op>(table[p##Op]);
//   PG_PRIMITIVES(PG_ROW)
//
// Numbers are for good: a new primitive is a row at the end, with the next number. One that is in use is not changed:
// what it computes is part of every schema that names it.
#pragma once

#include <cstdint>

namespace pg::math {

constexpr int kMaxParameters = 3;  // of a primitive: p[0], p[1], p[2]

// How the functor is called, on numbers of the type of the arithmetic; p: its parameters, numbers that are the same for
// all elements.
enum Form : uint8_t {
  kUnary,    // f(x, p)
  kBinary,   // f(a, b)
  kSlope,    // f(x, d, p): a cotangent d through a function at x
  kTernary,  // f(a, b, c, p)
  kChoice    // a where the condition is true, else b: bits are moved, not looked at. It has no functor
};

// What it takes. All computes in float (for itself and the 16-bit floats), double, int64_t or int32_t (for itself, the
// smaller integers and bool).
enum Types : uint8_t {
  kOfFloats = 1,
  kOfIntegers = 2,
  kOfBooleans = 4,
  kNumbers = kOfFloats | kOfIntegers,
  kWhole = kOfIntegers | kOfBooleans,
  kEvery = kNumbers | kOfBooleans
};

enum Result : uint8_t { kSame, kTruth };  // of the type of the operands, or bool
enum Cost : uint8_t {
  kCheap,
  kCostly,
  kSpecial
};  // some instructions; an elementary function; a special one, in double
enum Checks : uint8_t { kNothing, kDivides, kPower };  // integers: operand 1 may not be 0; may not be negative

// X(number, functor, form, parameters, types, result, cost, checks)
// clang-format off
#define PG_PRIMITIVES(X) \
  X(0, Add, kBinary, 0, kEvery, kSame, kCheap, kNothing) \
  X(1, Sub, kBinary, 0, kNumbers, kSame, kCheap, kNothing) \
  X(2, Mul, kBinary, 0, kEvery, kSame, kCheap, kNothing) \
  X(3, Maximum, kBinary, 0, kEvery, kSame, kCheap, kNothing) \
  X(4, Minimum, kBinary, 0, kEvery, kSame, kCheap, kNothing) \
  X(5, Pow, kBinary, 0, kNumbers, kSame, kCostly, kPower) \
  X(6, Remainder, kBinary, 0, kNumbers, kSame, kCostly, kDivides) \
  X(7, FloorDiv, kBinary, 0, kNumbers, kSame, kCostly, kDivides) \
  X(8, Fmod, kBinary, 0, kNumbers, kSame, kCostly, kDivides) \
  X(9, Fmax, kBinary, 0, kEvery, kSame, kCheap, kNothing) \
  X(10, Fmin, kBinary, 0, kEvery, kSame, kCheap, kNothing) \
  X(11, Div, kBinary, 0, kOfFloats, kSame, kCheap, kNothing) \
  X(12, Atan2, kBinary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(13, Hypot, kBinary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(14, Copysign, kBinary, 0, kOfFloats, kSame, kCheap, kNothing) \
  X(15, LogAddExp, kBinary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(16, LogAddExp2, kBinary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(17, Xlogy, kBinary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(18, BitwiseAnd, kBinary, 0, kWhole, kSame, kCheap, kNothing) \
  X(19, BitwiseOr, kBinary, 0, kWhole, kSame, kCheap, kNothing) \
  X(20, BitwiseXor, kBinary, 0, kWhole, kSame, kCheap, kNothing) \
  X(21, LeftShift, kBinary, 0, kOfIntegers, kSame, kCheap, kNothing) \
  X(22, RightShift, kBinary, 0, kOfIntegers, kSame, kCheap, kNothing) \
  X(23, Eq, kBinary, 0, kEvery, kTruth, kCheap, kNothing) \
  X(24, Ne, kBinary, 0, kEvery, kTruth, kCheap, kNothing) \
  X(25, Lt, kBinary, 0, kEvery, kTruth, kCheap, kNothing) \
  X(26, Le, kBinary, 0, kEvery, kTruth, kCheap, kNothing) \
  X(27, Gt, kBinary, 0, kEvery, kTruth, kCheap, kNothing) \
  X(28, Ge, kBinary, 0, kEvery, kTruth, kCheap, kNothing) \
  X(29, LogicalAnd, kBinary, 0, kEvery, kTruth, kCheap, kNothing) \
  X(30, LogicalOr, kBinary, 0, kEvery, kTruth, kCheap, kNothing) \
  X(31, LogicalXor, kBinary, 0, kEvery, kTruth, kCheap, kNothing) \
  X(32, Addcmul, kTernary, 1, kNumbers, kSame, kCheap, kNothing) \
  X(33, Lerp, kTernary, 0, kOfFloats, kSame, kCheap, kNothing) \
  X(34, Addcdiv, kTernary, 1, kOfFloats, kSame, kCheap, kNothing) \
  X(35, Select, kChoice, 0, kEvery, kSame, kCheap, kNothing) \
  X(36, Neg, kUnary, 0, kNumbers, kSame, kCheap, kNothing) \
  X(37, Abs, kUnary, 0, kEvery, kSame, kCheap, kNothing) \
  X(38, Sign, kUnary, 0, kEvery, kSame, kCheap, kNothing) \
  X(39, Square, kUnary, 0, kEvery, kSame, kCheap, kNothing) \
  X(40, Relu, kUnary, 0, kNumbers, kSame, kCheap, kNothing) \
  X(41, Relu6, kUnary, 0, kNumbers, kSame, kCheap, kNothing) \
  X(42, Clamp, kUnary, 2, kNumbers, kSame, kCheap, kNothing) \
  X(43, Hardtanh, kUnary, 2, kNumbers, kSame, kCheap, kNothing) \
  X(44, Threshold, kUnary, 2, kNumbers, kSame, kCheap, kNothing) \
  X(45, NanToNum, kUnary, 3, kEvery, kSame, kCheap, kNothing) \
  X(46, Reciprocal, kUnary, 0, kOfFloats, kSame, kCheap, kNothing) \
  X(47, Sqrt, kUnary, 0, kOfFloats, kSame, kCheap, kNothing) \
  X(48, Rsqrt, kUnary, 0, kOfFloats, kSame, kCheap, kNothing) \
  X(49, Deg2rad, kUnary, 0, kOfFloats, kSame, kCheap, kNothing) \
  X(50, Rad2deg, kUnary, 0, kOfFloats, kSame, kCheap, kNothing) \
  X(51, Frac, kUnary, 0, kOfFloats, kSame, kCheap, kNothing) \
  X(52, Hardshrink, kUnary, 1, kOfFloats, kSame, kCheap, kNothing) \
  X(53, Softshrink, kUnary, 1, kOfFloats, kSame, kCheap, kNothing) \
  X(54, Softsign, kUnary, 0, kOfFloats, kSame, kCheap, kNothing) \
  X(55, Hardswish, kUnary, 0, kOfFloats, kSame, kCheap, kNothing) \
  X(56, Hardsigmoid, kUnary, 0, kOfFloats, kSame, kCheap, kNothing) \
  X(57, LeakyRelu, kUnary, 1, kOfFloats, kSame, kCheap, kNothing) \
  X(58, Floor, kUnary, 0, kNumbers, kSame, kCheap, kNothing) \
  X(59, Ceil, kUnary, 0, kNumbers, kSame, kCheap, kNothing) \
  X(60, Round, kUnary, 0, kNumbers, kSame, kCheap, kNothing) \
  X(61, Trunc, kUnary, 0, kNumbers, kSame, kCheap, kNothing) \
  X(62, Exp, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(63, Exp2, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(64, Expm1, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(65, Log, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(66, Log1p, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(67, Log2, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(68, Log10, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(69, Sin, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(70, Cos, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(71, Tan, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(72, Sinh, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(73, Cosh, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(74, Tanh, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(75, Asin, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(76, Acos, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(77, Atan, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(78, Asinh, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(79, Acosh, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(80, Atanh, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(81, Erf, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(82, Erfc, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(83, Logit, kUnary, 1, kOfFloats, kSame, kCostly, kNothing) \
  X(84, Sigmoid, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(85, Silu, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(86, Softplus, kUnary, 2, kOfFloats, kSame, kCostly, kNothing) \
  X(87, Elu, kUnary, 1, kOfFloats, kSame, kCostly, kNothing) \
  X(88, Celu, kUnary, 1, kOfFloats, kSame, kCostly, kNothing) \
  X(89, Selu, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(90, Mish, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(91, LogSigmoid, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(92, Tanhshrink, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(93, Gelu, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(94, GeluTanh, kUnary, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(95, Erfinv, kUnary, 0, kOfFloats, kSame, kSpecial, kNothing) \
  X(96, Lgamma, kUnary, 0, kOfFloats, kSame, kSpecial, kNothing) \
  X(97, Digamma, kUnary, 0, kOfFloats, kSame, kSpecial, kNothing) \
  X(98, Polygamma, kUnary, 1, kOfFloats, kSame, kSpecial, kNothing) \
  X(99, Sinc, kUnary, 0, kOfFloats, kSame, kSpecial, kNothing) \
  X(100, RoundTo, kUnary, 1, kOfFloats, kSame, kCheap, kNothing) \
  X(101, BitwiseNot, kUnary, 0, kWhole, kSame, kCheap, kNothing) \
  X(102, IsNan, kUnary, 0, kEvery, kTruth, kCheap, kNothing) \
  X(103, IsInf, kUnary, 0, kEvery, kTruth, kCheap, kNothing) \
  X(104, IsFinite, kUnary, 0, kEvery, kTruth, kCheap, kNothing) \
  X(105, IsPosInf, kUnary, 0, kEvery, kTruth, kCheap, kNothing) \
  X(106, IsNegInf, kUnary, 0, kEvery, kTruth, kCheap, kNothing) \
  X(107, Signbit, kUnary, 0, kEvery, kTruth, kCheap, kNothing) \
  X(108, LogicalNot, kUnary, 0, kEvery, kTruth, kCheap, kNothing) \
  X(109, ReluGrad, kSlope, 0, kOfFloats, kSame, kCheap, kNothing) \
  X(110, HardtanhGrad, kSlope, 2, kOfFloats, kSame, kCheap, kNothing) \
  X(111, LeakyReluGrad, kSlope, 1, kOfFloats, kSame, kCheap, kNothing) \
  X(112, EluGrad, kSlope, 3, kOfFloats, kSame, kCostly, kNothing) \
  X(113, SigmoidGrad, kSlope, 0, kOfFloats, kSame, kCheap, kNothing) \
  X(114, TanhGrad, kSlope, 0, kOfFloats, kSame, kCheap, kNothing) \
  X(115, SiluGrad, kSlope, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(116, SoftplusGrad, kSlope, 2, kOfFloats, kSame, kCostly, kNothing) \
  X(117, MishGrad, kSlope, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(118, HardswishGrad, kSlope, 0, kOfFloats, kSame, kCheap, kNothing) \
  X(119, GeluGrad, kSlope, 0, kOfFloats, kSame, kCostly, kNothing) \
  X(120, GeluTanhGrad, kSlope, 0, kOfFloats, kSame, kCostly, kNothing)
// clang-format on

enum Primitive : uint16_t {
#define PG_ROW(number, Op, ...) p##Op = number,
  PG_PRIMITIVES(PG_ROW)
#undef PG_ROW
};

struct PrimitiveInfo {
  uint16_t number;
  const char* name;
  Form form;
  uint8_t parameters, types;
  Result result;
  Cost cost;
  Checks checks;
};

inline constexpr PrimitiveInfo kPrimitives[] = {
#define PG_ROW(number, Op, form, parameters, types, result, cost, checks) \
  {number, #Op, form, parameters, types, result, cost, checks},
    PG_PRIMITIVES(PG_ROW)
#undef PG_ROW
};
inline constexpr int kPrimitiveCount = static_cast<int>(sizeof kPrimitives / sizeof kPrimitives[0]);

constexpr const PrimitiveInfo& info(Primitive p) { return kPrimitives[p]; }

constexpr int operands(Form form) { return form == kUnary ? 1 : form == kBinary || form == kSlope ? 2 : 3; }
constexpr bool has_parameters(Form form) { return form != kBinary && form != kChoice; }
// Integers are rounded already.
constexpr bool rounds(Primitive p) { return p == pFloor || p == pCeil || p == pRound || p == pTrunc; }
// What stands for a primitive on booleans, whose arithmetic is that of int32_t: all bits turned over would be no truth
// value.
constexpr Primitive of_booleans(Primitive p) { return p == pBitwiseNot ? pLogicalNot : p; }

// Rows stand in the order of their numbers, without gaps.
constexpr bool in_order() {
  for (int i = 0; i < kPrimitiveCount; i++)
    if (kPrimitives[i].number != i) return false;
  return true;
}
static_assert(in_order(), "a primitive's number is not its row's");

}  // namespace pg::math
