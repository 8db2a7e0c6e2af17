// SPDX-License-Identifier: Apache-2.0
// cumsum and cumprod along an axis: floats accumulate in float64, integers in int64.
#include "axis_rows.hpp"

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

}  // namespace
}  // namespace cpu
