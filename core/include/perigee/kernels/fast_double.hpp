// SPDX-License-Identifier: Apache-2.0
// Elementary functions of doubles for lines of them, free of branches and tables like those of fast_math.hpp. Within 2
// units in the last place. For processors; nothing else calls them.
#pragma once

#include "perigee/kernels/fast_math.hpp"

namespace pg::math {

// x + kRounder has x rounded to an integer in its low bits, which power_of_two takes. |x| < 2^51.
constexpr double kRounder = 6755399441055744.0;  // 1.5 * 2^52

PG_HD double power_of_two(double shifted) { return bits_double((double_bits(shifted) + 1023) << 52); }

// e^(x - n ln 2) for the integer n next to x / ln 2.
PG_HD double exp_reduced(double x, double n) {
  double r = __builtin_fma(n, -1.90821492927058770e-10, __builtin_fma(n, -6.93147180369123816e-01, x));
  // (e^r - 1 - r) / r^2 on [-0.35, 0.35]: Taylor's series, whose next term is 2^-58 of the whole.
  double square = r * r, fourth = square * square;
  double a = __builtin_fma(r, 1.0 / 6, 1.0 / 2), b = __builtin_fma(r, 1.0 / 120, 1.0 / 24);
  double c = __builtin_fma(r, 1.0 / 5040, 1.0 / 720), d = __builtin_fma(r, 1.0 / 362880, 1.0 / 40320);
  double e = __builtin_fma(r, 1.0 / 39916800, 1.0 / 3628800), f = __builtin_fma(r, 1.0 / 6227020800, 1.0 / 479001600);
  double low = __builtin_fma(b, square, a), high = __builtin_fma(f, square, e);
  double tail = __builtin_fma(__builtin_fma(high, fourth, __builtin_fma(d, square, c)), fourth, low);
  return __builtin_fma(square, tail, r) + 1.0;
}

// log(x) for x = 0, normal x > 0, infinity and NaN. With x = 2^k m, m in [sqrt(1/2), sqrt(2)), log m = 2 artanh(s) for
// s = (m - 1) / (m + 1), by its series.
PG_HD double positive_log(double x) {
  const uint64_t half_root = 0x3fe6a09e667f3bcdull;  // bits of sqrt(1/2)
  uint64_t shifted = double_bits(x) + (0x3ff0000000000000ull - half_root);
  double k = bits_double(shifted >> 52 | 0x4330000000000000ull) - (4503599627370496.0 + 1023.0);
  double f = bits_double((shifted & 0xfffffffffffffull) + half_root) - 1.0;
  double s = f / (2.0 + f), z = s * s, p = 1.0 / 21;
  p = __builtin_fma(p, z, 1.0 / 19);
  p = __builtin_fma(p, z, 1.0 / 17);
  p = __builtin_fma(p, z, 1.0 / 15);
  p = __builtin_fma(p, z, 1.0 / 13);
  p = __builtin_fma(p, z, 1.0 / 11);
  p = __builtin_fma(p, z, 1.0 / 9);
  p = __builtin_fma(p, z, 1.0 / 7);
  p = __builtin_fma(p, z, 1.0 / 5);
  p = __builtin_fma(p, z, 1.0 / 3);
  // log(1 + f) = f - (f^2/2 - s (f^2/2 + R)): f itself is exact.
  double series = 2.0 * z * p, square = 0.5 * f * f;
  double tail = __builtin_fma(k, 1.90821492927058770e-10, s * (square + series));
  double result = __builtin_fma(k, 6.93147180369123816e-01, f - (square - tail));
  result = pick(x == 0.0, -HUGE_VAL, result);
  return pick(x < HUGE_VAL, result, x);
}

}  // namespace pg::math
