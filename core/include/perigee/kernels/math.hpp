// SPDX-License-Identifier: Apache-2.0
// The scalar arithmetic of every elementwise operator, once, for all devices: functors templated on the type they
// compute in (float, double, int32_t, int64_t; 16-bit floats compute in float, smaller integers and bool in int32_t),
// and the lists of them by operator name. Comparisons and predicates return bool.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "perigee/kernels/fast_math.hpp"

namespace pg::math {

template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T>;
template <class T>
using Unsigned = std::make_unsigned_t<T>;

// float on the host goes to fast_math.hpp, all else to the standard functions.
#if defined(__CUDA_ARCH__)
#define PG_MATH_PICK(fast, standard, x) return static_cast<T>(::standard(x))
#else
#define PG_MATH_PICK(fast, standard, x)   \
  if constexpr (std::is_same_v<T, float>) \
    return fast(x);                       \
  else                                    \
    return static_cast<T>(std::standard(x))
#endif
template <class T>
PG_HD T exp_of(T x) {
  PG_MATH_PICK(fast_exp, exp, x);
}
template <class T>
PG_HD T expm1_of(T x) {
  PG_MATH_PICK(fast_expm1, expm1, x);
}
template <class T>
PG_HD T log_of(T x) {
  PG_MATH_PICK(fast_log, log, x);
}
template <class T>
PG_HD T log1p_of(T x) {
  PG_MATH_PICK(fast_log1p, log1p, x);
}
template <class T>
PG_HD T tanh_of(T x) {
  PG_MATH_PICK(fast_tanh, tanh, x);
}
template <class T>
PG_HD T erf_of(T x) {
  PG_MATH_PICK(fast_erf, erf, x);
}
#undef PG_MATH_PICK

template <class T>
PG_HD bool is_nan(T x) {
  return x != x;
}
template <class T>
PG_HD T sigmoid_of(T x) {
  return T(1) / (T(1) + exp_of(-x));
}

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
struct Maximum {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    return a > b || is_nan(a) ? a : b;
  }
};
struct Minimum {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    return a < b || is_nan(a) ? a : b;
  }
};
struct Pow {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    if constexpr (is_float<T>) {
      return std::pow(a, b);
    } else {
      if (b < 0) return a == 1 ? T(1) : a == T(-1) ? (b % 2 == 0 ? T(1) : T(-1)) : T(0);
      Unsigned<T> result = 1, base = static_cast<Unsigned<T>>(a);
      for (; b > 0; b >>= 1, base *= base) {
        if (b & 1) result *= base;
      }
      return static_cast<T>(result);
    }
  }
};
// The sign is the divisor's. Division of integers by zero gives 0 here; devices report it.
struct Remainder {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    if constexpr (is_float<T>) {
      T r = std::fmod(a, b);
      return r != T(0) && (r < T(0)) != (b < T(0)) ? r + b : r;
    } else {
      if (b == 0 || b == -1) return 0;  // the smallest number by -1 would trap
      T r = a % b;
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
  }
};
struct FloorDiv {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    if constexpr (is_float<T>) {
      if (b == T(0)) return a / b;
      T rest = std::fmod(a, b), quotient = (a - rest) / b;
      if (rest != T(0) && (b < T(0)) != (rest < T(0))) quotient -= T(1);
      if (quotient == T(0)) return std::copysign(T(0), a / b);
      T whole = std::floor(quotient);
      return quotient - whole > T(0.5) ? whole + T(1) : whole;
    } else {
      if (b == 0) return 0;
      if (b == -1) return static_cast<T>(Unsigned<T>(0) - static_cast<Unsigned<T>>(a));
      T quotient = a / b;
      return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
    }
  }
};
struct Atan2 {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    return std::atan2(a, b);
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
  X(remainder, Remainder) X(floor_div, FloorDiv)
// clang-format on
#define PG_MATH_BINARY_FLOAT(X) X(div, Div) X(atan2, Atan2)
// clang-format off
#define PG_MATH_COMPARE(X) \
  X(eq, Eq) X(ne, Ne) X(lt, Lt) X(le, Le) X(gt, Gt) X(ge, Ge) X(logical_and, LogicalAnd) \
  X(logical_or, LogicalOr) X(logical_xor, LogicalXor)
// clang-format on

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
struct Relu {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return x < T(0) ? T(0) : x;
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
    return std::log2(x);
  }
};
struct Log10 {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return std::log10(x);
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
struct Sin {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return std::sin(x);
  }
};
struct Cos {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return std::cos(x);
  }
};
struct Tan {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return std::tan(x);
  }
};
struct Sinh {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return std::sinh(x);
  }
};
struct Cosh {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return std::cosh(x);
  }
};
struct Tanh {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return tanh_of(x);
  }
};
struct Asin {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return std::asin(x);
  }
};
struct Acos {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return std::acos(x);
  }
};
struct Atan {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return std::atan(x);
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
    return std::erfc(x);
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
struct Sigmoid {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return sigmoid_of(x);
  }
};
struct Silu {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return x / (T(1) + exp_of(-x));
  }
};
// x times the normal distribution function.
struct Gelu {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return T(0.5) * x * (T(1) + erf_of(x * T(0.70710678118654752440)));
  }
};
struct GeluTanh {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
    return T(0.5) * x * (T(1) + tanh_of(inner));
  }
};
struct Softplus {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return (x < T(0) ? T(0) : x) + log1p_of(exp_of(x < T(0) ? x : -x));
  }
};
// p: negative_slope
struct LeakyRelu {
  template <class T>
  PG_HD T operator()(T x, const T* p) const {
    return x < T(0) ? x * p[0] : x;
  }
};
// p: alpha
struct Elu {
  template <class T>
  PG_HD T operator()(T x, const T* p) const {
    T negative = p[0] * expm1_of(x > T(0) ? T(0) : x);
    return x > T(0) ? x : negative;
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
struct LogicalNot {
  template <class T>
  PG_HD bool operator()(T x, const T*) const {
    return x == T(0);
  }
};

#define PG_MATH_UNARY(X) X(neg, Neg) X(abs, Abs) X(sign, Sign) X(square, Square) X(relu, Relu) X(clamp, Clamp)
// clang-format off
#define PG_MATH_UNARY_FLOAT(X) \
  X(reciprocal, Reciprocal) X(exp, Exp) X(expm1, Expm1) X(log, Log) X(log1p, Log1p) X(log2, Log2) \
  X(log10, Log10) X(sqrt, Sqrt) X(rsqrt, Rsqrt) X(sin, Sin) X(cos, Cos) X(tan, Tan) X(sinh, Sinh) X(cosh, Cosh) \
  X(tanh, Tanh) X(asin, Asin) X(acos, Acos) X(atan, Atan) X(erf, Erf) X(erfc, Erfc) X(floor, Floor) \
  X(ceil, Ceil) X(round, Round) X(trunc, Trunc) X(sigmoid, Sigmoid) X(silu, Silu) X(gelu, Gelu) \
  X(gelu_tanh, GeluTanh) X(softplus, Softplus) X(leaky_relu, LeakyRelu) X(elu, Elu)
// clang-format on
#define PG_MATH_PREDICATE(X) X(isnan, IsNan) X(isinf, IsInf) X(isfinite, IsFinite) X(logical_not, LogicalNot)

}  // namespace pg::math
