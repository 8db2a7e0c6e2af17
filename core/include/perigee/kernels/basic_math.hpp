// SPDX-License-Identifier: Apache-2.0
// What the functors of math.hpp and activations.hpp are made of.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "perigee/kernels/fast_power.hpp"
#include "perigee/kernels/fast_trig.hpp"
#include "perigee/kernels/primitives.hpp"

namespace pg::math {

template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T>;
template <class T>
using Unsigned = std::make_unsigned_t<T>;

// NAME_of(x): float on the host goes to the fast functions, all else to the standard ones.
#if defined(__CUDA_ARCH__)
#define PG_MATH_OF(name)              \
  template <class T>                  \
  PG_HD T name##_of(T x) {            \
    return static_cast<T>(::name(x)); \
  }
#else
#define PG_MATH_OF(name)                    \
  template <class T>                        \
  PG_HD T name##_of(T x) {                  \
    if constexpr (std::is_same_v<T, float>) \
      return fast_##name(x);                \
    else                                    \
      return static_cast<T>(std::name(x));  \
  }
#endif
PG_MATH_OF(exp)
PG_MATH_OF(exp2)
PG_MATH_OF(expm1)
PG_MATH_OF(log)
PG_MATH_OF(log1p)
PG_MATH_OF(log2)
PG_MATH_OF(log10)
PG_MATH_OF(tanh)
PG_MATH_OF(sinh)
PG_MATH_OF(cosh)
PG_MATH_OF(asin)
PG_MATH_OF(acos)
PG_MATH_OF(atan)
PG_MATH_OF(asinh)
PG_MATH_OF(acosh)
PG_MATH_OF(atanh)
PG_MATH_OF(erf)
PG_MATH_OF(erfc)
#undef PG_MATH_OF

template <class T>
PG_HD bool is_nan(T x) {
  return x != x;
}
// log(1 + e^x) for x <= 0.
template <class T>
PG_HD T log1p_exp_of(T x) {
#if !defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, float>) return fast_log1p_exp(x);
#endif
  return log1p_of(exp_of(x));
}
template <class T>
PG_HD T sigmoid_of(T x) {
  return T(1) / (T(1) + exp_of(-x));
}

}  // namespace pg::math
