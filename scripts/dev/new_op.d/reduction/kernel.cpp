// SPDX-License-Identifier: Apache-2.0
// new_op, a line at a time: computed in float64.
#include <cmath>

#include "axis_rows.hpp"

namespace cpu {
namespace {

struct NewOp final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    Storage s = storage_of(call.in(0));
    if (!is_float(s) || storage_of(call.out(0)) != s) refuse(call);
  }
  NewOp(const pg::KernelCall& call, pg::Plan&)
      : rows_({&call.in(0), &call.out(0)}, call.axis("axis", call.in(0).rank)) {}

  void launch(const pg_launch& launch) override {
    const void* x = pg::input(launch, 0);
    void* y = pg::output(launch, 0);
    rows_.each([&](int64_t begin, int64_t end) {
      std::vector<double> scratch(static_cast<size_t>(rows_.length()));
      for (int64_t i = begin; i < end; i++) {
        const void* line = rows_.load(0, rows_.line(0, x, i), sF64, scratch.data());
        double result = reduce(static_cast<const double*>(line), rows_.length());
        convert(sF64, rows_.storage(1), &result, rows_.line(1, y, i), 1);
      }
    });
  }

 private:
  static double reduce(const double* x, int64_t n) {
    double total = 0;
    for (int64_t j = 0; j < n; j++) total += x[j] * x[j];
    return std::sqrt(total / static_cast<double>(n));
  }
  AxisRows<2> rows_;
};
PG_KERNEL("new_op", NewOp);

}  // namespace
}  // namespace cpu
