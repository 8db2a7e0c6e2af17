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

// The same for up to kColumns columns side by side: element i of column j lies at x[i * x_step + j].
constexpr int64_t kColumns = kSoftmaxColumns;

struct Columns {
  float top[kColumns], lane[kColumns] = {};
  double total[kColumns] = {};

  Columns() {
    for (float& t : top) t = -INFINITY;
  }
  void flush() {
    for (int64_t j = 0; j < kColumns; j++) total[j] += static_cast<double>(lane[j]), lane[j] = 0;
  }
};

// count is kColumns in all tiles but the last of a run: a number that the compiler knows.
template <bool kLog, bool kWhole>
void softmax_tile(const float* x, int64_t x_step, float* y, int64_t y_step, int64_t n, int64_t width) {
  const int64_t count = kWhole ? kColumns : width;
  Columns c;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < count; j++) c.top[j] = pg::math::Maximum()(c.top[j], x[i * x_step + j]);
  }
  for (int64_t i = 0; i < n; i++) {
    PG_LOOP
    for (int64_t j = 0; j < count; j++) {
      float e = pg::math::fast_exp(x[i * x_step + j] - c.top[j]);
      if constexpr (!kLog) y[i * y_step + j] = e;
      c.lane[j] += e;
    }
    if (i % 64 == 63) c.flush();  // float lanes for a while, then into the double
  }
  c.flush();
  float last[kColumns];
  for (int64_t j = 0; j < count; j++) last[j] = static_cast<float>(kLog ? __builtin_log(c.total[j]) : 1.0 / c.total[j]);
  for (int64_t i = 0; i < n; i++) {
    PG_LOOP
    for (int64_t j = 0; j < count; j++) {
      float& out = y[i * y_step + j];
      out = kLog ? (x[i * x_step + j] - c.top[j]) - last[j] : out * last[j];
    }
  }
}

template <bool kLog>
void softmax_columns(const float* x, int64_t x_step, float* y, int64_t y_step, int64_t n, int64_t width) {
  (width == kColumns ? softmax_tile<kLog, true> : softmax_tile<kLog, false>)(x, x_step, y, y_step, n, width);
}

}  // namespace

void fill_rows(Simd& table) {
  table.softmax_columns = softmax_columns<false>;
  table.log_softmax_columns = softmax_columns<true>;
  table.softmax_row = softmax_row;
  table.log_softmax_row = log_softmax_row;
}

}  // namespace cpu::PG_CPU_ISA
