// SPDX-License-Identifier: Apache-2.0
// The parameters of an elementwise operator, as its functor takes them.
#pragma once

#include "elementwise.cuh"
#include "elementwise_form.hpp"
#include "kernel.hpp"
#include "perigee/kernels/math.hpp"
#include "perigee/kernels/parameters.hpp"

namespace cuda::elementwise {

// Infinite bounds become the ends of an integer type.
template <class T>
T bound(double value) {
  if constexpr (std::is_same_v<T, int32_t>) {
    int64_t whole = truncate(value);
    return static_cast<T>(whole < INT32_MIN ? INT32_MIN : whole > INT32_MAX ? INT32_MAX : whole);
  } else {
    return narrow<T>(value);
  }
}

template <class T>
void put_parameters(const pg::math::Parameters& parameters, const Launch& launch, T (&p)[pg::math::kMaxParameters]) {
  for (int i = 0; i < pg::math::kMaxParameters; i++)
    p[i] = i < parameters.count() ? bound<T>(parameters(launch.raw, i)) : T(0);
}

}  // namespace cuda::elementwise
