// SPDX-License-Identifier: Apache-2.0
// Running sums, products, extremes and logarithms of sums along an axis: floats in float64, integers in int64.
#include "axis_rows.hpp"
#include "perigee/kernels/math.hpp"

namespace cpu {
namespace {

struct Cumulative final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (is_float(storage_of(call.in(0))) != is_float(storage_of(call.out(0)))) refuse(call);
  }
  Cumulative(const pg::KernelCall& call, pg::Plan&)
      : product_(call.is("cumprod")), rows_({&call.out(0), &call.in(0)}, call.axis("axis", call.in(0).rank)) {}

  void launch(const pg_launch& launch) override {
    void* out = pg::output(launch, 0);
    const void* x = pg::input(launch, 0);
    if (rows_.length() == 0) return;
    bool floating = is_float(rows_.storage(0));
    Storage type = floating ? sF64 : sI64;
    rows_.each([&](int64_t begin, int64_t end) {
      std::vector<char> scratch(static_cast<size_t>(rows_.length()) * 16);
      char* result = scratch.data() + rows_.length() * 8;
      for (int64_t i = begin; i < end; i++) {
        const void* source = rows_.load(1, rows_.line(1, x, i), type, scratch.data());
        if (floating)
          accumulate(static_cast<const double*>(source), reinterpret_cast<double*>(result));
        else
          accumulate(static_cast<const int64_t*>(source), reinterpret_cast<uint64_t*>(result));
        rows_.store(0, rows_.line(0, out, i), type, result);
      }
    });
  }

 private:
  template <class From, class T>
  void accumulate(const From* x, T* y) const {
    T total = product_ ? T(1) : T(0);
    for (int64_t j = 0; j < rows_.length(); j++) {
      total = product_ ? total * static_cast<T>(x[j]) : total + static_cast<T>(x[j]);
      y[j] = total;
    }
  }
  bool product_;
  AxisRows<2> rows_;
};
PG_KERNEL("cumsum", Cumulative);
PG_KERNEL("cumprod", Cumulative);

// The extreme so far and its position, the last of equal ones; NaN beats all.
struct CumulativeExtreme final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (storage_of(call.in(0)) != storage_of(call.out(0)) || storage_of(call.out(1)) != sI64) refuse(call);
  }
  CumulativeExtreme(const pg::KernelCall& call, pg::Plan&)
      : largest_(call.is("cummax")),
        rows_({&call.out(0), &call.out(1), &call.in(0)}, call.axis("axis", call.in(0).rank)) {}

  void launch(const pg_launch& launch) override {
    void *out = pg::output(launch, 0), *index = pg::output(launch, 1);
    const void* x = pg::input(launch, 0);
    if (rows_.length() == 0) return;
    bool floating = is_float(rows_.storage(0));
    Storage type = floating ? sF64 : sI64;
    rows_.each([&](int64_t begin, int64_t end) {
      std::vector<double> scratch(static_cast<size_t>(rows_.length()) * 3);
      void *y = scratch.data() + rows_.length(), *at = scratch.data() + 2 * rows_.length();
      for (int64_t i = begin; i < end; i++) {
        const void* source = rows_.load(2, rows_.line(2, x, i), type, scratch.data());
        if (floating)
          follow(static_cast<const double*>(source), static_cast<double*>(y), static_cast<int64_t*>(at));
        else
          follow(static_cast<const int64_t*>(source), static_cast<int64_t*>(y), static_cast<int64_t*>(at));
        rows_.store(0, rows_.line(0, out, i), type, y);
        rows_.store(1, rows_.line(1, index, i), sI64, at);
      }
    });
  }

 private:
  template <class T>
  void follow(const T* x, T* y, int64_t* at) const {
    int64_t best = 0;
    for (int64_t j = 0; j < rows_.length(); j++) {
      bool leads = largest_ ? x[j] >= x[best] : x[j] <= x[best];
      if (leads || x[j] != x[j]) best = j;
      y[j] = x[best];
      at[j] = best;
    }
  }
  bool largest_;
  AxisRows<3> rows_;
};
PG_KERNEL("cummax", CumulativeExtreme);
PG_KERNEL("cummin", CumulativeExtreme);

struct LogCumSumExp final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (!is_float(storage_of(call.in(0))) || storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
  }
  LogCumSumExp(const pg::KernelCall& call, pg::Plan&)
      : reverse_(call.attr<bool>("reverse")), rows_({&call.out(0), &call.in(0)}, call.axis("axis", call.in(0).rank)) {}

  void launch(const pg_launch& launch) override {
    void* out = pg::output(launch, 0);
    const void* x = pg::input(launch, 0);
    if (rows_.length() == 0) return;
    rows_.each([&](int64_t begin, int64_t end) {
      std::vector<double> scratch(static_cast<size_t>(rows_.length()) * 2);
      double* y = scratch.data() + rows_.length();
      for (int64_t i = begin; i < end; i++) {
        accumulate(static_cast<const double*>(rows_.load(1, rows_.line(1, x, i), sF64, scratch.data())), y);
        rows_.store(0, rows_.line(0, out, i), sF64, y);
      }
    });
  }

 private:
  void accumulate(const double* x, double* y) const {
    double total = -INFINITY;
    for (int64_t j = 0, n = rows_.length(); j < n; j++) {
      int64_t at = reverse_ ? n - 1 - j : j;
      y[at] = total = pg::math::LogAddExp()(total, x[at]);
    }
  }
  bool reverse_;
  AxisRows<2> rows_;
};
PG_KERNEL("logcumsumexp", LogCumSumExp);

}  // namespace
}  // namespace cpu
