// SPDX-License-Identifier: Apache-2.0
// Trigonometric functions of float without branches; see fast_math.hpp.
#pragma once

#include "perigee/kernels/fast_math.hpp"

namespace pg::math {

// Of arguments beyond this (but not of infinity and NaN) the fast functions know too little of pi.
PG_HD bool beyond_reduction(float x) { return (__builtin_fabsf(x) > 65536.0f) & (__builtin_fabsf(x) < INFINITY); }

#if !defined(__CUDA_ARCH__)
// x less n times pi / 2, which is taken in three parts. The first difference is exact: a multiple of 2^-23 (or of x's
// last place) below 1.
struct Quarter {
  float r;
  uint32_t n;
};
PG_HD Quarter reduce_quarter(float x) {
  Rounded n = round_near(x * 0.636619747f);
  float first = fmaf_(n.value, -1.57079637f, x);
  float second = fmaf_(n.value, 4.37113883e-8f, first);
  return {fmaf_(n.value, 1.71512451e-15f, second), static_cast<uint32_t>(n.integer)};
}
PG_HD float sine_or_cosine(float r, uint32_t quarter) {
  float z = r * r;
  float s = 2.83272493e-06f;
  s = fmaf_(s, z, -0.000198530732f);
  s = fmaf_(s, z, 0.0083333794f);
  s = fmaf_(s, z, -0.166666672f);
  s = fmaf_(s * z, r, r);
  float c = 2.44325529e-05f;
  c = fmaf_(c, z, -0.00138873106f);
  c = fmaf_(c, z, 0.0416666456f);
  c = fmaf_(c * z, z, fmaf_(z, -0.5f, 1.0f));
  float v = pick((quarter & 1u) != 0, c, s);
  return bits_float(float_bits(v) ^ ((quarter & 2u) << 30));
}
PG_HD float fast_sin(float x) {
  Quarter q = reduce_quarter(x);
  return pick(__builtin_fabsf(x) < 1e-4f, x, sine_or_cosine(q.r, q.n));  // -0 stays
}
PG_HD float fast_cos(float x) {
  Quarter q = reduce_quarter(x);
  return sine_or_cosine(q.r, q.n + 1);
}
// Within 3 units in the last place.
PG_HD float fast_tan(float x) {
  Quarter q = reduce_quarter(x);
  float z = q.r * q.r;
  float p = 0.00939559191f;
  p = fmaf_(p, z, 0.00310295215f);
  p = fmaf_(p, z, 0.0244405698f);
  p = fmaf_(p, z, 0.0534083918f);
  p = fmaf_(p, z, 0.13338834f);
  p = fmaf_(p, z, 0.333331555f);
  float t = fmaf_(p * z, q.r, q.r);
  bool odd = (q.n & 1u) != 0;
  t = pick(odd, -1.0f, t) / pick(odd, t, 1.0f);
  return pick(__builtin_fabsf(x) < 1e-4f, x, t);
}

// (sin(pi x)) / (pi x). Whole numbers but 0 give 0.
PG_HD float fast_sinc(float x) {
  float n = __builtin_nearbyintf(x), half = 0.5f * n;
  float r = x - n, z = r * r;
  float p = -0.00221547997f;
  p = fmaf_(p, z, 0.0261047427f);
  p = fmaf_(p, z, -0.190745384f);
  p = fmaf_(p, z, 0.811742008f);
  p = fmaf_(p, z, -1.64493406f);
  float ratio = r / x, v = fmaf_(p * z, ratio, ratio);
  v = pick(half != __builtin_nearbyintf(half), -v, v);
  return pick(x == 0.0f, 1.0f, v);
}

// (asin(s) - s) / s for s^2 = z <= 1/4
PG_HD float asin_tail(float z) {
  float p = 0.042157013f;
  p = fmaf_(p, z, 0.0241855029f);
  p = fmaf_(p, z, 0.0454690196f);
  p = fmaf_(p, z, 0.0749531016f);
  p = fmaf_(p, z, 0.166667521f);
  return p * z;
}
// Of |x|, and beyond 1/2 half of that of the complement: acos(a) = 2 asin(sqrt((1 - a) / 2)).
struct Arc {
  bool large;
  float t;
};
PG_HD Arc arc_sine(float a) {
  bool large = a > 0.5f;
  float z = pick(large, fmaf_(a, -0.5f, 0.5f), a * a);
  float s = pick(large, __builtin_sqrtf(z), a);
  return {large, fmaf_(s, asin_tail(z), s)};
}
PG_HD float fast_asin(float x) {
  Arc arc = arc_sine(__builtin_fabsf(x));
  float large = fmaf_(arc.t, -2.0f, 1.57079637f) - 4.37113883e-8f;
  return __builtin_copysignf(pick(arc.large, large, arc.t), x);
}
PG_HD float fast_acos(float x) {
  Arc arc = arc_sine(__builtin_fabsf(x));
  float small = 1.57079637f - (__builtin_copysignf(arc.t, x) + 4.37113883e-8f);
  float large = pick(x < 0.0f, fmaf_(arc.t, -2.0f, 3.14159274f) - 8.74227766e-8f, 2.0f * arc.t);
  return pick(arc.large, large, small);
}

// For 0 <= q <= 1.
PG_HD float arc_tangent(float q) {
  float z = q * q;
  float p = 0.00291975634f;
  p = fmaf_(p, z, -0.0163642373f);
  p = fmaf_(p, z, 0.0432059728f);
  p = fmaf_(p, z, -0.0755172893f);
  p = fmaf_(p, z, 0.106657863f);
  p = fmaf_(p, z, -0.142110035f);
  p = fmaf_(p, z, 0.199937671f);
  p = fmaf_(p, z, -0.333331525f);
  return fmaf_(p * z, q, q);
}
PG_HD float fast_atan(float x) {
  float a = __builtin_fabsf(x);
  bool steep = a > 1.0f;
  float t = arc_tangent(pick(steep, 1.0f, a) / pick(steep, a, 1.0f));
  return __builtin_copysignf(pick(steep, (1.57079637f - t) - 4.37113883e-8f, t), x);
}
// Within 3 units in the last place.
PG_HD float fast_atan2(float y, float x) {
  float b = __builtin_fabsf(y), a = __builtin_fabsf(x);
  bool steep = b > a;
  float above = pick(steep, a, b), below = pick(steep, b, a);
  float q = pick(above == below, pick(below == 0.0f, 0.0f, 1.0f), above / below);  // of two infinities too
  float t = arc_tangent(q);
  t = pick(steep, (1.57079637f - t) - 4.37113883e-8f, t);
  t = pick((float_bits(x) >> 31) != 0, (3.14159274f - t) - 8.74227766e-8f, t);
  return pick((x != x) | (y != y), x + y, __builtin_copysignf(t, y));
}

#endif

}  // namespace pg::math
