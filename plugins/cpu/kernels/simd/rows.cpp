// SPDX-License-Identifier: Apache-2.0
// Whole lines in float32 and float64: softmax, its logarithm, and the ways back through both; a dense line by itself,
// or kLines<T> lines side by side.
#include "exp_below.hpp"
#include "perigee/kernels/math.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

constexpr int64_t kLanes = 32;
constexpr int64_t kStretch = 64;  // what lanes of T take before it goes into double

template <class T>
T largest(const T* x, int64_t n) {
  T lane[kLanes];
  for (int64_t j = 0; j < kLanes; j++) lane[j] = static_cast<T>(-INFINITY);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t j = 0; j < kLanes; j++) lane[j] = pg::math::Maximum()(lane[j], x[i + j]);
  }
  for (int64_t j = 0; i + j < n; j++) lane[j] = pg::math::Maximum()(lane[j], x[i + j]);
  T top = lane[0];
  for (int64_t j = 1; j < kLanes; j++) top = pg::math::Maximum()(top, lane[j]);
  return top;
}

// The sum of term(i) for i below n.
template <class T, class Term>
[[gnu::always_inline]] inline double total_of(int64_t n, const Term& term) {
  T lane[kLanes] = {};
  double total = 0;
  int64_t i = 0;
  for (int64_t stop = 0; i + kLanes <= n;) {
    stop = i + kStretch * kLanes < n ? i + kStretch * kLanes : n;
    for (; i + kLanes <= stop; i += kLanes) {
      PG_LOOP
      for (int64_t j = 0; j < kLanes; j++) lane[j] += term(i + j);
    }
    for (int64_t j = 0; j < kLanes; j++) total += static_cast<double>(lane[j]), lane[j] = 0;
  }
  for (; i < n; i++) total += static_cast<double>(term(i));
  return total;
}

template <class T, bool kLog>
void softmax_row(const void* from, void* to, int64_t n) {
  const T* x = static_cast<const T*>(from);
  T *y = static_cast<T*>(to), top = largest(x, n);
  double total = total_of<T>(
      n, [=](int64_t i) __attribute__((always_inline)) {
        T e = exp_below(x[i] - top);
        if constexpr (!kLog) y[i] = e;
        return e;
      });
  T last = static_cast<T>(kLog ? pg::math::positive_log(total) : 1.0 / total);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) y[i] = kLog ? (x[i] - top) - last : y[i] * last;
}

// y: what softmax (log_softmax) gave; dy, dx: the gradients of its result and of its argument.
template <class T, bool kLog>
void softmax_grad_row(const void* result, const void* above, void* below, int64_t n) {
  const T *y = static_cast<const T*>(result), *dy = static_cast<const T*>(above);
  T* dx = static_cast<T*>(below);
  T total = static_cast<T>(total_of<T>(
      n, [=](int64_t i) __attribute__((always_inline)) { return kLog ? dy[i] : y[i] * dy[i]; }));
  PG_LOOP
  for (int64_t i = 0; i < n; i++) {
    if constexpr (kLog)
      dx[i] = dy[i] - exp_below(y[i]) * total;
    else
      dx[i] = y[i] * (dy[i] - total);
  }
}

// Of lines side by side element i of line j lies at x[i * x_step + j].
template <class T>
struct Totals {
  static constexpr int64_t kCount = kLines<T>;
  T lane[kCount] = {};
  double total[kCount] = {};
  void flush() {
    for (int64_t j = 0; j < kCount; j++) total[j] += static_cast<double>(lane[j]), lane[j] = 0;
  }
};

// count is kLines in all tiles but the last of a run: a number that the compiler knows.
template <class T, bool kLog, bool kWhole>
void softmax_tile(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t n, int64_t width) {
  const int64_t count = kWhole ? kLines<T> : width;
  T top[kLines<T>];
  for (T& t : top) t = static_cast<T>(-INFINITY);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < count; j++) top[j] = pg::math::Maximum()(top[j], x[i * x_step + j]);
  }
  Totals<T> sums;
  for (int64_t i = 0; i < n; i++) {
    PG_LOOP
    for (int64_t j = 0; j < count; j++) {
      T e = exp_below(x[i * x_step + j] - top[j]);
      if constexpr (!kLog) y[i * y_step + j] = e;
      sums.lane[j] += e;
    }
    if (i % kStretch == kStretch - 1) sums.flush();
  }
  sums.flush();
  T last[kLines<T>];
  PG_LOOP
  for (int64_t j = 0; j < kLines<T>; j++) {
    last[j] = static_cast<T>(kLog ? pg::math::positive_log(sums.total[j]) : 1.0 / sums.total[j]);
  }
  for (int64_t i = 0; i < n; i++) {
    PG_LOOP
    for (int64_t j = 0; j < count; j++) {
      T& out = y[i * y_step + j];
      out = kLog ? (x[i * x_step + j] - top[j]) - last[j] : out * last[j];
    }
  }
}

template <class T, bool kLog>
void softmax_lines(const void* from, int64_t x_step, void* to, int64_t y_step, int64_t n, int64_t width) {
  (width == kLines<T> ? softmax_tile<T, kLog, true> : softmax_tile<T, kLog, false>)(static_cast<const T*>(from), x_step,
                                                                                    static_cast<T*>(to), y_step, n,
                                                                                    width);
}

template <class T, bool kLog, bool kWhole>
void softmax_grad_tile(const T* y, int64_t y_step, const T* dy, int64_t dy_step, T* dx, int64_t dx_step, int64_t n,
                       int64_t width) {
  const int64_t count = kWhole ? kLines<T> : width;
  Totals<T> sums;
  for (int64_t i = 0; i < n; i++) {
    PG_LOOP
    for (int64_t j = 0; j < count; j++) {
      T d = dy[i * dy_step + j];
      sums.lane[j] += kLog ? d : y[i * y_step + j] * d;
    }
    if (i % kStretch == kStretch - 1) sums.flush();
  }
  sums.flush();
  T total[kLines<T>];
  for (int64_t j = 0; j < kLines<T>; j++) total[j] = static_cast<T>(sums.total[j]);
  for (int64_t i = 0; i < n; i++) {
    PG_LOOP
    for (int64_t j = 0; j < count; j++) {
      T p = y[i * y_step + j], d = dy[i * dy_step + j];
      if constexpr (kLog)
        dx[i * dx_step + j] = d - exp_below(p) * total[j];
      else
        dx[i * dx_step + j] = p * (d - total[j]);
    }
  }
}

template <class T, bool kLog>
void softmax_grad_lines(const void* y, int64_t y_step, const void* dy, int64_t dy_step, void* dx, int64_t dx_step,
                        int64_t n, int64_t width) {
  (width == kLines<T> ? softmax_grad_tile<T, kLog, true>
                      : softmax_grad_tile<T, kLog, false>)(static_cast<const T*>(y), y_step, static_cast<const T*>(dy),
                                                           dy_step, static_cast<T*>(dx), dx_step, n, width);
}

template <class T, bool kLog>
void fill(Simd& table, bool wide) {
  table.softmax_row[kLog][wide] = softmax_row<T, kLog>;
  table.softmax_lines[kLog][wide] = softmax_lines<T, kLog>;
  table.softmax_grad_row[kLog][wide] = softmax_grad_row<T, kLog>;
  table.softmax_grad_lines[kLog][wide] = softmax_grad_lines<T, kLog>;
}

}  // namespace

void fill_rows(Simd& table) {
  fill<float, false>(table, false);
  fill<float, true>(table, false);
  fill<double, false>(table, true);
  fill<double, true>(table, true);
}

}  // namespace cpu::PG_CPU_ISA
