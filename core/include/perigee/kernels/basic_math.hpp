// SPDX-License-Identifier: Apache-2.0
// What the functors of math.hpp and activations.hpp are made of.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "perigee/kernels/fast_math.hpp"

namespace pg::math {

constexpr int kMaxParameters = 3;  // of an operator: p[0], p[1], p[2]

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
PG_HD T exp2_of(T x) {
  PG_MATH_PICK(fast_exp2, exp2, x);
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

}  // namespace pg::math
