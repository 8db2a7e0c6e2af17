// SPDX-License-Identifier: Apache-2.0
// The scalar arithmetic of powers and of what division leaves over. `Common` and `rare` are explained in
// trigonometry.hpp.
#pragma once

#include "perigee/kernels/basic_math.hpp"

namespace pg::math {

struct Pow {
  template <class T>
  PG_HD T operator()(T a, T b) const {
    if constexpr (is_float<T>) {
#if !defined(__CUDA_ARCH__)
      if constexpr (std::is_same_v<T, float>) return fast_pow(a, b);
#endif
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

template <bool kCommon, class T>
PG_HD T fmod_of(T a, T b) {
#if !defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, float>) {
    if (kCommon || !beyond_fmod(a, b)) return fast_fmod(a, b);
  }
#endif
  return std::fmod(a, b);
}

// The sign is the dividend's.
template <bool kCommon>
struct FmodOf {
  using Common = FmodOf<true>;
  static PG_HD bool rare(float a, float b) { return beyond_fmod(a, b); }
  template <class T>
  PG_HD T operator()(T a, T b) const {
    if constexpr (is_float<T>)
      return fmod_of<kCommon>(a, b);
    else
      return b == 0 || b == -1 ? T(0) : static_cast<T>(a % b);
  }
};
using Fmod = FmodOf<false>;

// The sign is the divisor's. Division of integers by zero gives 0 here; devices report it.
template <bool kCommon>
struct RemainderOf {
  using Common = RemainderOf<true>;
  static PG_HD bool rare(float a, float b) { return beyond_fmod(a, b); }
  template <class T>
  PG_HD T operator()(T a, T b) const {
    if constexpr (is_float<T>) {
      T r = fmod_of<kCommon>(a, b);
      return ((r != T(0)) & ((r < T(0)) != (b < T(0)))) ? r + b : r;
    } else {
      if (b == 0 || b == -1) return 0;  // the smallest number by -1 would trap
      T r = a % b;
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
  }
};
using Remainder = RemainderOf<false>;

template <bool kCommon>
struct FloorDivOf {
  using Common = FloorDivOf<true>;
  static PG_HD bool rare(float a, float b) { return beyond_fmod(a, b); }
  template <class T>
  PG_HD T operator()(T a, T b) const {
    if constexpr (is_float<T>) {
      T exact = a / b, rest = fmod_of<kCommon>(a, b), quotient = (a - rest) / b;
      quotient = ((rest != T(0)) & ((b < T(0)) != (rest < T(0)))) ? quotient - T(1) : quotient;
      T whole = std::floor(quotient);
      whole = quotient - whole > T(0.5) ? whole + T(1) : whole;
      whole = quotient == T(0) ? std::copysign(T(0), exact) : whole;
      return b == T(0) ? exact : whole;
    } else {
      if (b == 0) return 0;
      if (b == -1) return static_cast<T>(Unsigned<T>(0) - static_cast<Unsigned<T>>(a));
      T quotient = a / b;
      return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
    }
  }
};
using FloorDiv = FloorDivOf<false>;

}  // namespace pg::math
