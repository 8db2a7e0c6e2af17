// SPDX-License-Identifier: Apache-2.0
// e^x where no x is above 80, as in lines whose largest element has been taken away: the bits of fast_exp, but results
// below the least normal number are 0, so that two comparisons and half of the scaling are saved.
#pragma once

#include "loop.hpp"
#include "perigee/kernels/fast_double.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

[[gnu::always_inline]] inline float exp_below(float x) {
  pg::math::Rounded n = pg::math::round_near(x * 1.44269504f);
  float r = pg::math::reduce_exp(x, n.value);
  float p = pg::math::fmaf_(r * r, pg::math::exp_tail(r), r) + 1.0f;
  return pg::math::pick(x < -87.33f, 0.0f, p * pg::math::power_of_two(n.integer));
}
[[gnu::always_inline]] inline double exp_below(double x) {
  double shifted = x * 1.4426950408889634 + pg::math::kRounder;
  double p = pg::math::exp_reduced(x, shifted - pg::math::kRounder);
  return pg::math::pick(x < -708.39, 0.0, p * pg::math::power_of_two(shifted));
}

}  // namespace
}  // namespace cpu::PG_CPU_ISA
