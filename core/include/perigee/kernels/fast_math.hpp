// SPDX-License-Identifier: Apache-2.0
// Elementary functions of one float, free of branches and tables, so that a loop over them vectorises. Errors are
// within 2 units in the last place unless a comment says otherwise. On the GPU, and for double everywhere, the standard
// functions are used. The coefficients are our own minimax fits (iteratively reweighted least squares).
#pragma once

#include <cmath>

#include "perigee/kernels/float16.hpp"

namespace pg::math {

#if defined(__CUDA_ARCH__)
PG_HD float fmaf_(float a, float b, float c) { return ::fmaf(a, b, c); }
#else
PG_HD float fmaf_(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#endif

// x rounded to an integer, as a float and as the low bits of an integer. |x| < 2^22.
struct Rounded {
  float value;
  int32_t integer;
};
PG_HD Rounded round_near(float x) {
  float shifted = x + 12582912.0f;  // 1.5 * 2^23
  return {shifted - 12582912.0f, static_cast<int32_t>(float_bits(shifted)) - 0x4b400000};
}
PG_HD float power_of_two(int32_t n) { return bits_float(static_cast<uint32_t>(n + 127) << 23); }
// ln(2) times n taken from x, in two steps.
PG_HD float reduce_exp(float x, float n) { return fmaf_(n, -1.42860677e-6f, fmaf_(n, -0.693145752f, x)); }
// (e^r - 1 - r) / r^2 on [-0.35, 0.35]
PG_HD float exp_tail(float r) {
  float p = 0.000199089087f;
  p = fmaf_(p, r, 0.00139345442f);
  p = fmaf_(p, r, 0.0083332841f);
  p = fmaf_(p, r, 0.0416664568f);
  p = fmaf_(p, r, 0.166666668f);
  return fmaf_(p, r, 0.5f);
}

PG_HD float fast_exp(float x) {
  x = x > 89.0f ? 89.0f : x;  // the comparisons keep NaN
  x = x < -104.0f ? -104.0f : x;
  Rounded n = round_near(x * 1.44269504f);
  float r = reduce_exp(x, n.value);
  float p = fmaf_(r * r, exp_tail(r), r) + 1.0f;
  int32_t half = n.integer >> 1;  // in two steps: 2^n itself may be subnormal or too large
  return p * power_of_two(half) * power_of_two(n.integer - half);
}

PG_HD float fast_exp2(float x) {
  x = x > 129.0f ? 129.0f : x;
  x = x < -151.0f ? -151.0f : x;
  Rounded n = round_near(x);
  float r = (x - n.value) * 0.693147181f;
  float p = fmaf_(r * r, exp_tail(r), r) + 1.0f;
  int32_t half = n.integer >> 1;
  return p * power_of_two(half) * power_of_two(n.integer - half);
}

PG_HD float fast_expm1(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -18.0f ? -18.0f : x;
  Rounded n = round_near(x * 1.44269504f);
  float r = reduce_exp(x, n.value);
  float p = fmaf_(r * r, exp_tail(r), r);
  float scale = power_of_two(n.integer - 1);  // half of 2^n, which may overflow
  return 2.0f * fmaf_(scale, p, scale - 0.5f);
}

PG_HD float fast_log(float x) {
  bool subnormal = x < 1.17549435e-38f;
  float scaled = subnormal ? x * 8388608.0f : x;
  uint32_t bits = float_bits(scaled);  // unsigned: negative numbers, whose result is replaced below, may wrap
  int32_t e = static_cast<int32_t>(bits - 0x3f2aaaabu) >> 23;  // the mantissa is taken from [2/3, 4/3)
  float f = bits_float(bits - (static_cast<uint32_t>(e) << 23)) - 1.0f;
  float exponent = static_cast<float>(e) - (subnormal ? 23.0f : 0.0f);
  float p = 0.119159421f;
  p = fmaf_(p, f, -0.124299148f);
  p = fmaf_(p, f, 0.107857882f);
  p = fmaf_(p, f, -0.122872271f);
  p = fmaf_(p, f, 0.143008659f);
  p = fmaf_(p, f, -0.166733988f);
  p = fmaf_(p, f, 0.19999749f);
  p = fmaf_(p, f, -0.24999943f);
  p = fmaf_(p, f, 0.33333334f);
  float square = f * f;
  float tail = fmaf_(square * f, p, fmaf_(square, -0.5f, exponent * -2.12194440e-4f));
  float result = fmaf_(exponent, 0.693359375f, f + tail);
  result = x == 0.0f ? -INFINITY : result;
  result = x < 0.0f ? NAN : result;
  return x < INFINITY ? result : x;  // infinity and NaN stay
}

PG_HD float fast_log1p(float x) {
  float u = 1.0f + x;
  float lost = x - (u - 1.0f);
  float result = fast_log(u) + lost / u;
  result = u == 0.0f ? -INFINITY : result;
  return x < INFINITY ? result : x;
}

PG_HD float fast_tanh(float x) {
  float magnitude = __builtin_fabsf(x);
  magnitude = magnitude > 10.0f ? 10.0f : magnitude;
  float t = fast_expm1(2.0f * magnitude);
  return __builtin_copysignf(t / (t + 2.0f), x);
}

PG_HD float fast_erf(float x) {
  float a = __builtin_fabsf(x), z = a * a;
  float p = 7.8891228e-05f;
  p = fmaf_(p, z, -0.000802084226f);
  p = fmaf_(p, z, 0.00518953545f);
  p = fmaf_(p, z, -0.0268544446f);
  p = fmaf_(p, z, 0.112836002f);
  p = fmaf_(p, z, -0.376126271f);
  float small = fmaf_(p, z, 1.12837917f) * a;
  float b = a > 4.0f ? 4.0f : a;  // log(erfc) on [0.95, 4]
  float q = -2.14960455e-05f;
  q = fmaf_(q, b, 0.000439105619f);
  q = fmaf_(q, b, -0.00419360758f);
  q = fmaf_(q, b, 0.0251789589f);
  q = fmaf_(q, b, -0.108372465f);
  q = fmaf_(q, b, -0.633262624f);
  q = fmaf_(q, b, -1.12955682f);
  q = fmaf_(q, b, 0.000183443042f);
  float result = a < 0.98f ? small : 1.0f - fast_exp(q);
  return __builtin_copysignf(x != x ? x : result, x);
}

}  // namespace pg::math
