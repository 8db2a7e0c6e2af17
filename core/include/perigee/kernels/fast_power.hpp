// SPDX-License-Identifier: Apache-2.0
// Powers, remainders and lengths of two floats, hyperbolic functions and the inverse error function, without branches;
// see fast_math.hpp.
#pragma once

#include "perigee/kernels/fast_math.hpp"

namespace pg::math {

// Whether the quotient is too large (or no number) for `fast_fmod`, which is exact otherwise: quotients of floats below
// 2^27 are further from whole numbers than double's rounding is wide.
PG_HD bool beyond_fmod(float x, float y) {
  float b = __builtin_fabsf(y);
  return !((__builtin_fabsf(x) < b * 134217728.0f) & (b < INFINITY));
}

#if !defined(__CUDA_ARCH__)
// In double where float has too few digits: log2(x) of x > 0 within 2e-13 of itself, and 2^x for |x| < 1000.
PG_HD double precise_log2(double x) {
  constexpr uint64_t kTwoThirds = 0x3fe5555555555555;
  uint64_t bits = double_bits(x), e = (bits - kTwoThirds + (1024ull << 52)) >> 52;  // 1024 more than the exponent
  double f = bits_double(bits - ((e - 1024) << 52)) - 1.0;                          // in [-1/3, 1/3)
  double exponent = bits_double(e | 0x4330000000000000) - (4503599627370496.0 + 1024.0);
  double s = f / (2.0 + f), z = s * s;
  double p = 0.29088211734885328;
  p = __builtin_fma(p, z, 0.31928031813957264);
  p = __builtin_fma(p, z, 0.41222632737145998);
  p = __builtin_fma(p, z, 0.57707775350595303);
  p = __builtin_fma(p, z, 0.9617966948360529);
  p = __builtin_fma(p, z, 2.8853900817774121);
  return __builtin_fma(p, s, exponent);
}
PG_HD double precise_exp2(double x) {
  double shifted = x + 6755399441055744.0, r = x - (shifted - 6755399441055744.0);  // 1.5 * 2^52
  double p = 1.5201912556698886e-05;
  p = __builtin_fma(p, r, 0.00015469291131248175);
  p = __builtin_fma(p, r, 0.0013333922604695722);
  p = __builtin_fma(p, r, 0.00961802725375481);
  p = __builtin_fma(p, r, 0.055504103533947462);
  p = __builtin_fma(p, r, 0.24022651198156236);
  p = __builtin_fma(p, r, 0.69314718072846593);
  p = __builtin_fma(p, r, 0.99999999996168332);
  return bits_double(double_bits(p) + (double_bits(shifted) << 52));
}

// The special values of C's pow.
PG_HD float fast_pow(float x, float y) {
  float a = __builtin_fabsf(x), b = __builtin_fabsf(y);
  double logarithm = precise_log2(static_cast<double>(a));
  logarithm = pick(a == 0.0f, -static_cast<double>(INFINITY), logarithm);
  logarithm = pick(a < INFINITY, logarithm, static_cast<double>(a));
  double p = static_cast<double>(y) * logarithm;
  p = pick(p > 200.0, 200.0, p);
  p = pick(p < -200.0, -200.0, p);
  float result = static_cast<float>(precise_exp2(p));
  result = pick((y == 0.0f) | ((a == 1.0f) & (b == INFINITY)), 1.0f, result);
  float half = 0.5f * y;
  bool whole = y == __builtin_truncf(y), odd = whole & (half != __builtin_truncf(half));
  result = pick(odd, __builtin_copysignf(result, x), result);
  result = pick((x < 0.0f) & (x > -INFINITY) & !whole, NAN, result);
  return pick((x == 1.0f) | (y == 0.0f), 1.0f, result);
}

PG_HD float fast_hypot(float x, float y) {
  double a = x, b = y;
  float result = static_cast<float>(__builtin_sqrt(a * a + b * b));
  return pick((__builtin_fabsf(x) == INFINITY) | (__builtin_fabsf(y) == INFINITY), INFINITY, result);
}

PG_HD float fast_fmod(float x, float y) {
  double quotient = __builtin_trunc(static_cast<double>(x) / static_cast<double>(y));
  return __builtin_copysignf(static_cast<float>(__builtin_fma(-quotient, static_cast<double>(y), x)), x);
}

// ---- hyperbolic functions ----

PG_HD float fast_sinh(float x) {
  float a = __builtin_fabsf(x), z = a * a;
  float p = 2.78221319e-06f;
  p = fmaf_(p, z, 0.000198428956f);
  p = fmaf_(p, z, 0.00833331048f);
  p = fmaf_(p, z, 0.166666672f);
  float e = half_exp(pick(a > 90.0f, 90.0f, a));
  return __builtin_copysignf(pick(a < 1.0f, fmaf_(p * z, a, a), e - 0.25f / e), x);
}
PG_HD float fast_cosh(float x) {
  float a = __builtin_fabsf(x);
  float e = half_exp(pick(a > 90.0f, 90.0f, a));
  return e + 0.25f / e;
}
// The inverses within 3 units in the last place. Large numbers by log(2 x).
PG_HD float fast_asinh(float x) {
  float a = __builtin_fabsf(x), z = a * a;
  bool large = a > 16777216.0f;
  float t = a + z / (1.0f + __builtin_sqrtf(z + 1.0f));
  return __builtin_copysignf(fast_log1p(pick(large, a, t)) + pick(large, 0.693147181f, 0.0f), x);
}
PG_HD float fast_acosh(float x) {
  float t = x - 1.0f;
  bool large = x > 16777216.0f;
  float inside = t + __builtin_sqrtf(t * (t + 2.0f));
  float result = fast_log1p(pick(large, x, inside)) + pick(large, 0.693147181f, 0.0f);
  return pick(x < 1.0f, NAN, result);
}
PG_HD float fast_atanh(float x) {
  float a = __builtin_fabsf(x);
  return __builtin_copysignf(0.5f * fast_log1p(2.0f * a / (1.0f - a)), x);
}

// In the form of Giles, "Approximating the erfinv function" (2010): polynomials of w = -log(1 - x^2), and of its root
// from w = 5 on. Within 4 units in the last place.
PG_HD float fast_erfinv(float x) {
  float w = -fast_log(fmaf_(-x, x, 1.0f));
  float c = w - 2.5f;
  float p = -8.25221136e-09f;
  p = fmaf_(p, c, 2.79396914e-08f);
  p = fmaf_(p, c, 4.60121782e-07f);
  p = fmaf_(p, c, -3.5209539e-06f);
  p = fmaf_(p, c, -4.94412689e-06f);
  p = fmaf_(p, c, 0.000218568952f);
  p = fmaf_(p, c, -0.00125275471f);
  p = fmaf_(p, c, -0.00417766254f);
  p = fmaf_(p, c, 0.24664028f);
  p = fmaf_(p, c, 1.50140941f);
  float s = __builtin_sqrtf(w) - 3.0f;
  float q = 0.00011327707f;
  q = fmaf_(q, s, -0.000305317866f);
  q = fmaf_(q, s, -5.53877435e-05f);
  q = fmaf_(q, s, 0.00147950451f);
  q = fmaf_(q, s, -0.00359668769f);
  q = fmaf_(q, s, 0.00568950782f);
  q = fmaf_(q, s, -0.00763777783f);
  q = fmaf_(q, s, 0.00944483932f);
  q = fmaf_(q, s, 1.00167501f);
  q = fmaf_(q, s, 2.83297682f);
  float result = pick(w < 5.0f, p, q) * x;
  return pick(__builtin_fabsf(x) == 1.0f, x * INFINITY, result);
}

#endif

}  // namespace pg::math
