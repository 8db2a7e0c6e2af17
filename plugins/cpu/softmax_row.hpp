// SPDX-License-Identifier: Apache-2.0
// One dense row of softmax or its logarithm. x may be y.
#pragma once

#include <cmath>

#include "simd.hpp"

namespace cpu {

inline void softmax_row_f64(bool log, const double* x, double* y, int64_t n) {
  double top = -INFINITY, total = 0;
  for (int64_t i = 0; i < n; i++) top = x[i] > top || x[i] != x[i] ? x[i] : top;
  for (int64_t i = 0; i < n; i++) total += std::exp(x[i] - top);
  double log_total = std::log(total);
  for (int64_t i = 0; i < n; i++) y[i] = log ? (x[i] - top) - log_total : std::exp(x[i] - top) / total;
}

inline void softmax_row(bool wide, bool log, const void* x, void* y, int64_t n) {
  if (n == 0) return;
  if (wide)
    softmax_row_f64(log, static_cast<const double*>(x), static_cast<double*>(y), n);
  else
    (log ? simd->log_softmax_row : simd->softmax_row)(static_cast<const float*>(x), static_cast<float*>(y), n);
}

}  // namespace cpu
