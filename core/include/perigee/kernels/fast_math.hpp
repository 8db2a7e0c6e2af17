// SPDX-License-Identifier: Apache-2.0
// Elementary functions of one float, free of branches and tables, so that a loop over them vectorises: exponentials,
// logarithms, the error function; the others are in fast_trig.hpp and fast_power.hpp. Errors, against double on every
// 97th float or more rarely, are within 2 units in the last place unless a comment says otherwise. On the GPU, and for
// double everywhere, the standard functions are used. The coefficients are our own minimax fits: least squares on 600
// Chebyshev nodes, reweighted by the error until it is level (Lawson's algorithm), rounded to float from the lowest
// power up with the rest fitted again.
#pragma once

#include <cmath>

#include "perigee/kernels/float16.hpp"

namespace pg::math {

#if defined(__CUDA_ARCH__)
PG_HD float fmaf_(float a, float b, float c) { return ::fmaf(a, b, c); }
#else
PG_HD float fmaf_(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#endif

// c ? a : b without control flow: a compiler that sees a branch splits what follows by it, and then computes, in lanes
// that it throws away, with constants of its own choice: subnormal ones, which are slow.
#if defined(__CUDA_ARCH__)
PG_HD float pick(bool c, float a, float b) { return c ? a : b; }
PG_HD double pick(bool c, double a, double b) { return c ? a : b; }
#else
PG_HD float pick(bool c, float a, float b) {
  uint32_t mask = 0u - static_cast<uint32_t>(c);
  return bits_float((float_bits(a) & mask) | (float_bits(b) & ~mask));
}
PG_HD uint64_t double_bits(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
PG_HD double bits_double(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
PG_HD double pick(bool c, double a, double b) {
  uint64_t mask = 0u - static_cast<uint64_t>(c);
  return bits_double((double_bits(a) & mask) | (double_bits(b) & ~mask));
}
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
  float square = r * r;  // two coefficients at a time: the chain of dependent steps is what such a loop waits for
  float p = fmaf_(0.000199089087f, r, 0.00139345442f);
  p = fmaf_(p, square, fmaf_(0.0083332841f, r, 0.0416664568f));
  return fmaf_(p, square, fmaf_(0.166666668f, r, 0.5f));
}

PG_HD float fast_exp(float x) {
  x = pick(x > 89.0f, 89.0f, x);  // the comparisons keep NaN
  x = pick(x < -104.0f, -104.0f, x);
  Rounded n = round_near(x * 1.44269504f);
  float r = reduce_exp(x, n.value);
  float p = fmaf_(r * r, exp_tail(r), r) + 1.0f;
  int32_t half = n.integer >> 1;  // in two steps: 2^n itself may be subnormal or too large
  return p * power_of_two(half) * power_of_two(n.integer - half);
}

PG_HD float fast_exp2(float x) {
  x = pick(x > 129.0f, 129.0f, x);
  x = pick(x < -151.0f, -151.0f, x);
  Rounded n = round_near(x);
  float r = (x - n.value) * 0.693147181f;
  float p = fmaf_(r * r, exp_tail(r), r) + 1.0f;
  int32_t half = n.integer >> 1;
  return p * power_of_two(half) * power_of_two(n.integer - half);
}

PG_HD float fast_expm1(float x) {
  x = pick(x > 89.0f, 89.0f, x);
  x = pick(x < -18.0f, -18.0f, x);
  Rounded n = round_near(x * 1.44269504f);
  float r = reduce_exp(x, n.value);
  float p = fmaf_(r * r, exp_tail(r), r);
  float scale = power_of_two(n.integer - 1);  // half of 2^n, which may overflow
  return 2.0f * fmaf_(scale, p, scale - 0.5f);
}

// e^x / 2 for 0 <= x <= 90.
PG_HD float half_exp(float x) {
  Rounded n = round_near(x * 1.44269504f);
  float r = reduce_exp(x, n.value);
  float p = fmaf_(r * r, exp_tail(r), r) + 1.0f;
  int32_t half = n.integer >> 1;
  return p * power_of_two(half) * power_of_two(n.integer - half - 1);
}

// x = 2^exponent (1 + f); log(1 + f) = f + f^2 (f p - 1/2). What is no positive number is for `log_of_special`.
struct LogParts {
  float exponent, f, square, p;
};
PG_HD LogParts log_parts(float x) {
  bool subnormal = x < 1.17549435e-38f;
  float scaled = pick(subnormal, x * 8388608.0f, x);
  uint32_t bits = float_bits(scaled);  // unsigned: negative numbers, whose result is replaced, may wrap
  int32_t e = static_cast<int32_t>(bits - 0x3f2aaaabu) >> 23;  // the mantissa is taken from [2/3, 4/3)
  float f = bits_float(bits - (static_cast<uint32_t>(e) << 23)) - 1.0f;
  float exponent = static_cast<float>(e) - pick(subnormal, 23.0f, 0.0f);
  float square = f * f, p = 0.119159421f;
  p = fmaf_(p, square, fmaf_(-0.124299148f, f, 0.107857882f));
  p = fmaf_(p, square, fmaf_(-0.122872271f, f, 0.143008659f));
  p = fmaf_(p, square, fmaf_(-0.166733988f, f, 0.19999749f));
  p = fmaf_(p, square, fmaf_(-0.24999943f, f, 0.33333334f));
  return {exponent, f, square, p};
}
PG_HD float log_of_special(float x, float result) {
  result = pick(x == 0.0f, -INFINITY, result);
  result = pick(x < 0.0f, NAN, result);
  return pick(x < INFINITY, result, x);  // infinity and NaN stay
}

PG_HD float fast_log(float x) {
  LogParts l = log_parts(x);
  float tail = fmaf_(l.square * l.f, l.p, fmaf_(l.square, -0.5f, l.exponent * -2.12194440e-4f));
  return log_of_special(x, fmaf_(l.exponent, 0.693359375f, l.f + tail));
}
// Powers of two give whole numbers.
PG_HD float fast_log2(float x) {
  LogParts l = log_parts(x);
  float tail = fmaf_(l.square * l.f, l.p, l.square * -0.5f);
  float small = fmaf_(tail, 1.44269502f, l.f * 1.92596299e-8f);
  return log_of_special(x, l.exponent + fmaf_(l.f, 1.44269502f, small));
}
PG_HD float fast_log10(float x) {
  LogParts l = log_parts(x);
  float tail = fmaf_(l.square * l.f, l.p, l.square * -0.5f);
  float small = fmaf_(tail, 0.434294492f, fmaf_(l.exponent, -1.43209889e-8f, l.f * -1.01030501e-8f));
  return log_of_special(x, fmaf_(l.exponent, 0.30103001f, fmaf_(l.f, 0.434294492f, small)));
}

PG_HD float fast_log1p(float x) {
  float u = 1.0f + x;
  float lost = x - (u - 1.0f);
  float result = fast_log(u) + lost / u;
  result = pick(u == 0.0f, -INFINITY, result);
  return pick(x < INFINITY, result, x);
}

// log(1 + e^x) for x <= 0: 2 atanh(e / (2 + e)).
PG_HD float fast_log1p_exp(float x) {
  float e = fast_exp(x), s = e / (2.0f + e), z = s * s;
  float p = fmaf_(0.280095816f, z, 0.280026019f);
  p = fmaf_(p, z * z, fmaf_(0.400214523f, z, 0.666664183f));
  return fmaf_(s * z, p, s + s);
}

// Within 2.5 units in the last place.
PG_HD float fast_tanh(float x) {
  float magnitude = __builtin_fabsf(x);
  magnitude = pick(magnitude > 10.0f, 10.0f, magnitude);
  float t = fast_expm1(2.0f * magnitude);
  return __builtin_copysignf(t / (t + 2.0f), x);
}

// (erf(a) - a) / a for a^2 = z <= 0.97
PG_HD float erf_tail(float z) {
  float p = 7.97223183e-05f;
  p = fmaf_(p, z, -0.000804330339f);
  p = fmaf_(p, z, 0.00519180484f);
  p = fmaf_(p, z, -0.0268555023f);
  p = fmaf_(p, z, 0.112836227f);
  p = fmaf_(p, z, -0.376126289f);
  return fmaf_(p, z, 0.128379166f);
}
// The complement's fourth root is as smooth as a short polynomial wants it: on [0.97, 3.93], beyond which erf is 1.
PG_HD float fast_erf(float x) {
  float a = __builtin_fabsf(x);
  float small = fmaf_(a, erf_tail(a * a), a);
  float b = pick(a > 3.93f, 3.93f, a) - 2.5f;
  float b2 = b * b, q = -2.45708288e-05f;
  q = fmaf_(q, b2, fmaf_(-0.000276625593f, b, -1.69258856e-05f));
  q = fmaf_(q, b2, fmaf_(0.00276363222f, b, -0.00638349494f));
  q = fmaf_(q, b2, fmaf_(-0.012256478f, b, 0.0936300755f));
  q = fmaf_(q, b2, fmaf_(-0.190068841f, b, 0.142031848f));
  float square = q * q;
  return __builtin_copysignf(pick(a < 0.98f, small, fmaf_(-square, square, 1.0f)), x);  // NaN comes from q
}

// From 0.57 on exp(-a^2) times a function of (a - 3) / (a + 3), divided by 1 + a; a^2 in two parts. Within 4 units in
// the last place.
PG_HD float fast_erfc(float x) {
  float a = __builtin_fabsf(x);
  float near_zero = 1.0f - fmaf_(x, erf_tail(a * a), x);
  float b = pick(a > 10.1f, 10.1f, a);
  float u = (b - 3.0f) / (b + 3.0f);
  float q = -0.000260352768f;
  q = fmaf_(q, u, 0.000677345786f);
  q = fmaf_(q, u, 0.00157347263f);
  q = fmaf_(q, u, -0.00977730751f);
  q = fmaf_(q, u, 0.0219637584f);
  q = fmaf_(q, u, -0.0237978231f);
  q = fmaf_(q, u, -0.0102355694f);
  q = fmaf_(q, u, 0.0990203023f);
  q = fmaf_(q, u, -0.230927333f);
  q = fmaf_(q, u, 0.71600461f);
  float square = b * b, rest = fmaf_(b, b, -square);
  q = fmaf_(q, -rest, q) / (1.0f + b);
  float tail = fast_exp(-square) * q;
  return pick(a < 0.57f, near_zero, pick(x < 0.0f, 2.0f - tail, tail));
}

}  // namespace pg::math
