// SPDX-License-Identifier: Apache-2.0
// Whole-row functions in float32.
#include "loop.hpp"
#include "perigee/kernels/math.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

constexpr int64_t kLanes = 32;

float largest(const float* x, int64_t n) {
  float lane[kLanes];
  for (int64_t j = 0; j < kLanes; j++) lane[j] = -INFINITY;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t j = 0; j < kLanes; j++) lane[j] = pg::math::Maximum()(lane[j], x[i + j]);
  }
  for (int64_t j = 0; i + j < n; j++) lane[j] = pg::math::Maximum()(lane[j], x[i + j]);
  float top = lane[0];
  for (int64_t j = 1; j < kLanes; j++) top = pg::math::Maximum()(top, lane[j]);
  return top;
}

// sum of e^(x - shift); kKept: writes the exponentials to y.
template <bool kKept>
double exponentials(const float* x, float* y, int64_t n, float shift) {
  float lane[kLanes] = {};
  double total = 0;
  int64_t i = 0;
  for (int64_t stop = 0; i + kLanes <= n;) {
    stop = i + 64 * kLanes < n ? i + 64 * kLanes : n;  // float lanes for a while, then into the double
    for (; i + kLanes <= stop; i += kLanes) {
      PG_LOOP
      for (int64_t j = 0; j < kLanes; j++) {
        float e = pg::math::fast_exp(x[i + j] - shift);
        if constexpr (kKept) y[i + j] = e;
        lane[j] += e;
      }
    }
    for (int64_t j = 0; j < kLanes; j++) total += static_cast<double>(lane[j]), lane[j] = 0;
  }
  for (; i < n; i++) {
    float e = pg::math::fast_exp(x[i] - shift);
    if constexpr (kKept) y[i] = e;
    total += static_cast<double>(e);
  }
  return total;
}

void softmax_row(const float* x, float* y, int64_t n) {
  double total = exponentials<true>(x, y, n, largest(x, n));
  float scale = static_cast<float>(1.0 / total);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) y[i] *= scale;
}

void log_softmax_row(const float* x, float* y, int64_t n) {
  float top = largest(x, n);
  float log_total = static_cast<float>(__builtin_log(exponentials<false>(x, nullptr, n, top)));
  PG_LOOP
  for (int64_t i = 0; i < n; i++) y[i] = (x[i] - top) - log_total;
}

}  // namespace

void fill_rows(Simd& table) {
  table.softmax_row = softmax_row;
  table.log_softmax_row = log_softmax_row;
}

}  // namespace cpu::PG_CPU_ISA
