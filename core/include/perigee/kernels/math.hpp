// SPDX-License-Identifier: Apache-2.0
// The scalar arithmetic of every elementwise operator, once, for all devices: functors templated on the type they
// compute in (float, double, int32_t, int64_t; 16-bit floats compute in float, smaller integers and bool in int32_t),
// and the lists of them by operator name. Comparisons and predicates return bool.
#pragma once

#include "perigee/kernels/activations.hpp"
#include "perigee/kernels/division.hpp"
#include "perigee/kernels/trigonometry.hpp"

namespace pg::math {

// ---- binary ----

// Integers wrap around.
struct Add {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    if constexpr (is_float<T>)
      return a + b;
    else
      return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  }
};
struct Sub {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    if constexpr (is_float<T>)
      return a - b;
    else
      return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
  }
};
struct Mul {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    if constexpr (is_float<T>)
      return a * b;
    else
      return static_cast<T>(static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
  }
};
struct Div {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    return a / b;
  }
};
// NaN where either is. Two choices rather than one with an `or`, which compilers do not vectorise.
struct Maximum {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    T larger = a > b ? a : b;
    return is_nan(a) ? a : larger;
  }
};
struct Minimum {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    T smaller = a < b ? a : b;
    return is_nan(a) ? a : smaller;
  }
};

// NaN only where both are.
struct Fmax {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    T larger = a >= b ? a : b;
    return is_nan(b) ? a : larger;
  }
};
struct Fmin {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    T smaller = a <= b ? a : b;
    return is_nan(b) ? a : smaller;
  }
};
struct Copysign {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    return std::copysign(a, b);
  }
};
// Equal infinities have no difference.
struct LogAddExp {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    T off = a == b ? T(0) : a - b;
    return (a < b ? b : a) + log1p_exp_of(-std::fabs(off));
  }
};
struct LogAddExp2 {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    T off = a == b ? T(0) : a - b;
    return (a < b ? b : a) + log1p_exp_of(-std::fabs(off) * T(0.69314718055994530942)) * T(1.44269504088896340736);
  }
};
struct Xlogy {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    T product = a * log_of(b);
    return a == T(0) && !is_nan(b) ? T(0) : product;
  }
};
struct BitwiseAnd {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    return a & b;
  }
};
struct BitwiseOr {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    return a | b;
  }
};
struct BitwiseXor {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    return a ^ b;
  }
};
// Distances below 0 count as larger than any: what is shifted out leaves 0, or the sign.
struct LeftShift {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    constexpr T kBits = sizeof(T) * 8;
    bool all = (b < 0) | (b >= kBits);
    return all ? T(0) : static_cast<T>(static_cast<Unsigned<T>>(a) << (all ? T(0) : b));
  }
};
struct RightShift {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    constexpr T kBits = sizeof(T) * 8;
    return a >> (((b < 0) | (b >= kBits)) ? kBits - 1 : b);
  }
};

struct Eq {
  template <class T>
  PG_HD bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Ne {
  template <class T>
  PG_HD bool operator()(T a, T b) const {
    return a != b;
  }
};
struct Lt {
  template <class T>
  PG_HD bool operator()(T a, T b) const {
    return a < b;
  }
};
struct Le {
  template <class T>
  PG_HD bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Gt {
  template <class T>
  PG_HD bool operator()(T a, T b) const {
    return a > b;
  }
};
struct Ge {
  template <class T>
  PG_HD bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct LogicalAnd {
  template <class T>
  PG_HD bool operator()(T a, T b) const {
    return (a != T(0)) & (b != T(0));
  }
};
struct LogicalOr {
  template <class T>
  PG_HD bool operator()(T a, T b) const {
    return (a != T(0)) | (b != T(0));
  }
};
struct LogicalXor {
  template <class T>
  PG_HD bool operator()(T a, T b) const {
    return (a != T(0)) != (b != T(0));
  }
};

// X(operator name, functor)
// clang-format off
#define PG_MATH_BINARY(X) \
  X(add, Add) X(sub, Sub) X(mul, Mul) X(maximum, Maximum) X(minimum, Minimum) X(pow, Pow) \
  X(remainder, Remainder) X(floor_div, FloorDiv) X(fmod, Fmod) X(fmax, Fmax) X(fmin, Fmin)
// clang-format on
// clang-format off
#define PG_MATH_BINARY_FLOAT(X) \
  X(div, Div) X(atan2, Atan2) X(hypot, Hypot) X(copysign, Copysign) X(logaddexp, LogAddExp) \
  X(logaddexp2, LogAddExp2) X(xlogy, Xlogy)
#define PG_MATH_BINARY_INT(X) \
  X(bitwise_and, BitwiseAnd) X(bitwise_or, BitwiseOr) X(bitwise_xor, BitwiseXor) \
  X(bitwise_left_shift, LeftShift) X(bitwise_right_shift, RightShift)
#define PG_MATH_COMPARE(X) \
  X(eq, Eq) X(ne, Ne) X(lt, Lt) X(le, Le) X(gt, Gt) X(ge, Ge) X(logical_and, LogicalAnd) \
  X(logical_or, LogicalOr) X(logical_xor, LogicalXor)
// clang-format on

// ---- ternary ----

// From the nearer end, so that weights 0 and 1 give the operands.
struct Lerp {
  template <class T>
  PG_HD T operator()(T a, T b, T w, const T*) const {
    T way = b - a;
    return w < T(0.5) ? a + w * way : b - way * (T(1) - w);
  }
};
// p: value
struct Addcmul {
  template <class T>
  PG_HD T operator()(T x, T a, T b, const T* p) const {
    return Add()(x, Mul()(p[0], Mul()(a, b)));
  }
};
// p: value
struct Addcdiv {
  template <class T>
  PG_HD T operator()(T x, T a, T b, const T* p) const {
    return x + p[0] * (a / b);
  }
};
#define PG_MATH_TERNARY(X) X(addcmul, Addcmul)
#define PG_MATH_TERNARY_FLOAT(X) X(lerp, Lerp) X(addcdiv, Addcdiv)

// ---- unary; `p` are the operator's parameters ----

struct Neg {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return Sub()(T(0), x);
  }
};
template <>
PG_HD float Neg::operator()(float x, const float*) const {
  return -x;
}
template <>
PG_HD double Neg::operator()(double x, const double*) const {
  return -x;
}
struct Abs {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    if constexpr (is_float<T>)
      return std::fabs(x);
    else
      return x < 0 ? Sub()(T(0), x) : x;
  }
};
struct Sign {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return x > T(0) ? T(1) : x < T(0) ? T(-1) : is_nan(x) ? x : T(0);
  }
};
struct Square {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return Mul()(x, x);
  }
};
// p: min, max. NaN stays.
struct Clamp {
  template <class T>
  PG_HD T operator()(T x, const T* p) const {
    T low = x < p[0] ? p[0] : x;
    return low > p[1] ? p[1] : low;
  }
};

struct Reciprocal {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return T(1) / x;
  }
};
struct Exp {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return exp_of(x);
  }
};
struct Expm1 {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return expm1_of(x);
  }
};
struct Log {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return log_of(x);
  }
};
struct Log1p {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return log1p_of(x);
  }
};
struct Log2 {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return log2_of(x);
  }
};
struct Log10 {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return log10_of(x);
  }
};
struct Sqrt {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return std::sqrt(x);
  }
};
struct Rsqrt {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return T(1) / std::sqrt(x);
  }
};
struct Erf {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return erf_of(x);
  }
};
struct Erfc {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return erfc_of(x);
  }
};
struct Floor {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return std::floor(x);
  }
};
struct Ceil {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return std::ceil(x);
  }
};
// Halves go to the even neighbour.
struct Round {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return std::nearbyint(x);
  }
};
struct Trunc {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return std::trunc(x);
  }
};

struct Exp2 {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return exp2_of(x);
  }
};
struct Lgamma {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return static_cast<T>(lgamma(x));
  }
};
struct Digamma {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return static_cast<T>(digamma(x));
  }
};
// p: n
struct Polygamma {
  template <class T>
  PG_HD T operator()(T x, const T* p) const {
    return static_cast<T>(polygamma(p[0], x));
  }
};
// p: eps; negative: no limits
struct Logit {
  template <class T>
  PG_HD T operator()(T x, const T* p) const {
    T low = x < p[0] ? p[0] : x, limited = low > T(1) - p[0] ? T(1) - p[0] : low;
    T z = p[0] < T(0) ? x : limited;
    return log_of(z / (T(1) - z));
  }
};
struct Deg2rad {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return x * T(kPi / 180);
  }
};
struct Rad2deg {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return x * T(180 / kPi);
  }
};
struct Frac {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return x - std::trunc(x);
  }
};
// p: nan, posinf, neginf
struct NanToNum {
  template <class T>
  PG_HD T operator()(T x, const T* p) const {
    if constexpr (is_float<T>) {
      T high = x == std::numeric_limits<T>::infinity() ? p[1] : x;
      T low = x == -std::numeric_limits<T>::infinity() ? p[2] : high;
      return is_nan(x) ? p[0] : low;
    } else {
      return x;
    }
  }
};
// p: decimals. Powers of ten in double; the quotient of a whole number is the nearest to what is wanted.
struct RoundTo {
  template <class T>
  PG_HD T operator()(T x, const T* p) const {
    T scale = static_cast<T>(std::pow(10.0, std::fabs(static_cast<double>(p[0]))));
    return p[0] > T(0) ? std::nearbyint(x * scale) / scale : std::nearbyint(x / scale) * scale;
  }
};
struct BitwiseNot {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return ~x;
  }
};

struct IsNan {
  template <class T>
  PG_HD bool operator()(T x, const T*) const {
    return is_nan(x);
  }
};
struct IsInf {
  template <class T>
  PG_HD bool operator()(T x, const T*) const {
    if constexpr (is_float<T>)
      return std::fabs(x) == std::numeric_limits<T>::infinity();
    else
      return false;
  }
};
struct IsFinite {
  template <class T>
  PG_HD bool operator()(T x, const T*) const {
    if constexpr (is_float<T>)
      return std::fabs(x) < std::numeric_limits<T>::infinity();
    else
      return true;
  }
};
struct IsPosInf {
  template <class T>
  PG_HD bool operator()(T x, const T*) const {
    if constexpr (is_float<T>)
      return x == std::numeric_limits<T>::infinity();
    else
      return false;
  }
};
struct IsNegInf {
  template <class T>
  PG_HD bool operator()(T x, const T*) const {
    if constexpr (is_float<T>)
      return x == -std::numeric_limits<T>::infinity();
    else
      return false;
  }
};
struct Signbit {
  template <class T>
  PG_HD bool operator()(T x, const T*) const {
    if constexpr (is_float<T>)
      return std::signbit(x);
    else
      return x < 0;
  }
};
struct LogicalNot {
  template <class T>
  PG_HD bool operator()(T x, const T*) const {
    return x == T(0);
  }
};

// X(operator name, functor). In the order in which devices number them: those of all types, of floats, of integers,
// predicates. gelu_tanh and round_to are gelu and round with an attribute, and no operators by themselves.
// clang-format off
#define PG_MATH_UNARY(X) \
  X(neg, Neg) X(abs, Abs) X(sign, Sign) X(square, Square) X(relu, Relu) X(relu6, Relu6) X(clamp, Clamp) \
  X(hardtanh, Hardtanh) X(threshold, Threshold) X(nan_to_num, NanToNum)
#define PG_MATH_UNARY_CHEAP(X) \
  X(reciprocal, Reciprocal) X(sqrt, Sqrt) X(rsqrt, Rsqrt) X(deg2rad, Deg2rad) X(rad2deg, Rad2deg) X(frac, Frac) \
  PG_MATH_ACTIVATION_CHEAP(X)
#define PG_MATH_ROUND(X) X(floor, Floor) X(ceil, Ceil) X(round, Round) X(trunc, Trunc)
#define PG_MATH_UNARY_COSTLY(X) \
  X(exp, Exp) X(exp2, Exp2) X(expm1, Expm1) X(log, Log) X(log1p, Log1p) X(log2, Log2) X(log10, Log10) X(sin, Sin) \
  X(cos, Cos) X(tan, Tan) X(sinh, Sinh) X(cosh, Cosh) X(tanh, Tanh) X(asin, Asin) X(acos, Acos) X(atan, Atan) \
  X(asinh, Asinh) X(acosh, Acosh) X(atanh, Atanh) X(erf, Erf) X(erfc, Erfc) X(logit, Logit) \
  PG_MATH_ACTIVATION(X)
#define PG_MATH_UNARY_SPECIAL(X) \
  X(erfinv, Erfinv) X(lgamma, Lgamma) X(digamma, Digamma) X(polygamma, Polygamma) X(sinc, Sinc)
#define PG_MATH_UNARY_FLOAT(X) \
  PG_MATH_UNARY_CHEAP(X) PG_MATH_ROUND(X) PG_MATH_UNARY_COSTLY(X) PG_MATH_UNARY_SPECIAL(X) PG_MATH_GELU(X) \
  X(round_to, RoundTo)
#define PG_MATH_UNARY_INT(X) X(bitwise_not, BitwiseNot)
#define PG_MATH_PREDICATE(X) \
  X(isnan, IsNan) X(isinf, IsInf) X(isfinite, IsFinite) X(isposinf, IsPosInf) X(isneginf, IsNegInf) \
  X(signbit, Signbit) X(logical_not, LogicalNot)
// clang-format on

}  // namespace pg::math
