// SPDX-License-Identifier: Apache-2.0
// The scalar arithmetic of trigonometric and hyperbolic functions, and of the special ones that share their form.
//
// A functor with a `Common` has arguments that its fast way cannot take, which `rare` knows: a loop may look for them
// first and, where there are none, run Common instead, which vectorises.
#pragma once

#include "perigee/kernels/basic_math.hpp"
#include "perigee/kernels/special.hpp"

namespace pg::math {

#if defined(__CUDA_ARCH__)
#define PG_MATH_FAR(name, x) return static_cast<T>(::name(x))
#else
#define PG_MATH_FAR(name, x)                        \
  if constexpr (std::is_same_v<T, float>) {         \
    if (kCommon || !rare(x)) return fast_##name(x); \
  }                                                 \
  return static_cast<T>(std::name(x))
#endif
#define PG_MATH_REDUCED(Op, name)                                   \
  template <bool kCommon>                                           \
  struct Op##Of {                                                   \
    using Common = Op##Of<true>;                                    \
    static PG_HD bool rare(float x) { return beyond_reduction(x); } \
    template <class T>                                              \
    PG_HD T operator()(T x, const T*) const {                       \
      PG_MATH_FAR(name, x);                                         \
    }                                                               \
  };                                                                \
  using Op = Op##Of<false>;
PG_MATH_REDUCED(Sin, sin)
PG_MATH_REDUCED(Cos, cos)
PG_MATH_REDUCED(Tan, tan)
#undef PG_MATH_REDUCED
#undef PG_MATH_FAR

#define PG_MATH_FUNCTOR(Op, function)         \
  struct Op {                                 \
    template <class T>                        \
    PG_HD T operator()(T x, const T*) const { \
      return function(x);                     \
    }                                         \
  };
PG_MATH_FUNCTOR(Sinh, sinh_of)
PG_MATH_FUNCTOR(Cosh, cosh_of)
PG_MATH_FUNCTOR(Tanh, tanh_of)
PG_MATH_FUNCTOR(Asin, asin_of)
PG_MATH_FUNCTOR(Acos, acos_of)
PG_MATH_FUNCTOR(Atan, atan_of)
PG_MATH_FUNCTOR(Asinh, asinh_of)
PG_MATH_FUNCTOR(Acosh, acosh_of)
PG_MATH_FUNCTOR(Atanh, atanh_of)
#undef PG_MATH_FUNCTOR

struct Atan2 {
  template <class T>
  PG_HD T operator()(T a, T b) const {
#if !defined(__CUDA_ARCH__)
    if constexpr (std::is_same_v<T, float>) return fast_atan2(a, b);
#endif
    return std::atan2(a, b);
  }
};
struct Hypot {
  template <class T>
  PG_HD T operator()(T a, T b) const {
#if !defined(__CUDA_ARCH__)
    if constexpr (std::is_same_v<T, float>) return fast_hypot(a, b);
#endif
    return std::hypot(a, b);
  }
};
struct Sinc {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
#if !defined(__CUDA_ARCH__)
    if constexpr (std::is_same_v<T, float>) return fast_sinc(x);
#endif
    return x == T(0) ? T(1) : static_cast<T>(sin_pi(x) / (kPi * x));
  }
};
struct Erfinv {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
#if !defined(__CUDA_ARCH__)
    if constexpr (std::is_same_v<T, float>) return fast_erfinv(x);
#endif
    return static_cast<T>(erfinv(x));
  }
};

}  // namespace pg::math
