// SPDX-License-Identifier: Apache-2.0
// The scalar arithmetic of every elementwise operator, once, for all devices: functors templated on the type they
// compute in (float, double, int32_t, int64_t; 16-bit floats compute in float, smaller integers and bool in int32_t).
// Comparisons and predicates return bool. primitives.hpp is the table of them.
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

// ---- ternary ----

// The condition comes as a truth value, and what it chooses is not looked at: devices move bits.
struct Select {};

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
    if constexpr (is_float<T>)
      return std::floor(x);
    else
      return x;
  }
};
struct Ceil {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    if constexpr (is_float<T>)
      return std::ceil(x);
    else
      return x;
  }
};
// Halves go to the even neighbour.
struct Round {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    if constexpr (is_float<T>)
      return std::nearbyint(x);
    else
      return x;
  }
};
struct Trunc {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    if constexpr (is_float<T>)
      return std::trunc(x);
    else
      return x;
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

}  // namespace pg::math
