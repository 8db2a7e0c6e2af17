// SPDX-License-Identifier: Apache-2.0
// Special functions of one number: the inverse error function, the gamma function's logarithm and its derivatives.
// double for double; float is computed in double and rounded, as none of these is hot.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "perigee/kernels/hd.hpp"

namespace pg::math {

constexpr double kPi = 3.14159265358979323846;

// sin(pi x) and cos(pi x) / sin(pi x): x is reduced exactly, so that whole numbers give what they should.
PG_HD double sin_pi(double x) {
  double r = x - 2 * std::nearbyint(x / 2);  // in [-1, 1]
  double folded = std::fabs(r) > 0.5 ? std::copysign(1.0, r) - r : r;
  return std::sin(kPi * folded);
}
PG_HD double cot_pi(double x) {
  double r = x - std::nearbyint(x);  // in [-1/2, 1/2]
  return 1 / std::tan(kPi * r);
}

// Winitzki's approximation (2008), within 0.2 percent, and steps of Halley's method; near 1 by the complement, where
// erf has lost its digits.
PG_HD double erfinv(double y) {
  double a = std::fabs(y);
  if (!(a < 1)) return a == 1 ? std::copysign(std::numeric_limits<double>::infinity(), y) : NAN;
  if (a < 1e-8) return y * 0.88622692545275801365;                             // sqrt(pi) / 2
  double logarithm = std::log1p(-a * a), half = 4.3307467508 + logarithm / 2;  // 2 / (pi 0.147)
  double x = std::sqrt(std::sqrt(half * half - logarithm / 0.147) - half);
  for (int i = 0; i < 3; i++) {
    double off = a < 0.5 ? std::erf(x) - a : (1 - a) - std::erfc(x);
    double step = off / (1.12837916709551257390 * std::exp(-x * x));
    x -= step / (1 + x * step);
  }
  return std::copysign(x, y);
}

PG_HD double lgamma(double x) {
#if defined(__CUDA_ARCH__) || !defined(__GLIBC__)
  return ::lgamma(x);
#else
  int sign;  // not the one that all threads share
  return ::lgamma_r(x, &sign);
#endif
}

// The logarithm's derivative: recurrence to x >= 10, then the asymptotic series (Abramowitz and Stegun 6.3.18); the
// reflection formula (6.3.7) for x < 0.
PG_HD double digamma(double x) {
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  double reflected = 0;
  if (x < 0) {
    if (x == std::floor(x)) return NAN;
    reflected = -kPi * cot_pi(x);
    x = 1 - x;
  }
  double shifted = 0;
  for (; x < 10; x += 1) shifted -= 1 / x;
  double z = 1 / (x * x);
  double series =
      z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * 691 / 32760)))));
  return reflected + shifted + std::log(x) - 0.5 / x - series;
}

// The sum of (q + k)^-s over k >= 0 for q > 0, s > 1, by the Euler-Maclaurin formula from q >= 10 on.
PG_HD double hurwitz_zeta(double s, double q) {
  double sum = 0;
  for (; q < 10; q += 1) sum += std::pow(q, -s);
  double power = std::pow(q, -s), z = 1 / (q * q);
  sum += power * (q / (s - 1) + 0.5);
  // B(2k) / (2k)! times s (s + 1) ... (s + 2k - 2) q^(-s - 2k + 1)
  const double bernoulli[] = {1.0 / 12,
                              -1.0 / 720,
                              1.0 / 30240,
                              -1.0 / 1209600,
                              1.0 / 47900160,
                              -691.0 / 1307674368000,
                              1.0 / 74724249600,
                              -3617.0 / 10670622842880000,
                              43867.0 / 5109094217170944000};
  double factor = s * power / q;
  for (int k = 0; k < 9; k++) {
    sum += bernoulli[k] * factor;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2) * z;
  }
  return sum;
}

// The n-th derivative of digamma, n >= 1: (-1)^(n+1) n! zeta(n + 1, x) (Abramowitz and Stegun 6.4.10). Where x < 0
// the terms on either side of 0 are summed apart.
PG_HD double polygamma(double n, double x) {
  if (n == 0) return digamma(x);
  double s = n + 1, sum;
  bool odd = std::fmod(n, 2.0) != 0;
  if (x > 0) {
    sum = x == std::numeric_limits<double>::infinity() ? 0 : hurwitz_zeta(s, x);
  } else if (x == std::floor(x)) {
    sum = odd ? std::numeric_limits<double>::infinity() : NAN;
  } else if (x != x) {
    return x;
  } else {
    double above = x + std::ceil(-x), below = 1 - above;  // the first terms on either side
    double negative = hurwitz_zeta(s, below) - hurwitz_zeta(s, 1 - x);
    sum = hurwitz_zeta(s, above) + (odd ? negative : -negative);
  }
  return (odd ? 1 : -1) * std::tgamma(n + 1) * sum;
}

}  // namespace pg::math
