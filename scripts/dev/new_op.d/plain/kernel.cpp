// SPDX-License-Identifier: Apache-2.0
// new_op, a line at a time: computed in float64.
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
      : rows_({&call.out(0), &call.in(0)}, call.axis("axis", call.in(0).rank)) {}

  void launch(const pg_launch& launch) override {
    void* y = pg::output(launch, 0);
    const void* x = pg::input(launch, 0);
    rows_.each([&](int64_t begin, int64_t end) {
      auto length = static_cast<size_t>(rows_.length());
      std::vector<double> scratch(2 * length);
      for (int64_t i = begin; i < end; i++) {
        const void* line = rows_.load(1, rows_.line(1, x, i), sF64, scratch.data());
        centre(static_cast<const double*>(line), scratch.data() + length, rows_.length());
        rows_.store(0, rows_.line(0, y, i), sF64, scratch.data() + length);
      }
    });
  }

 private:
  static void centre(const double* x, double* y, int64_t n) {
    double total = 0;
    for (int64_t j = 0; j < n; j++) total += x[j];
    for (int64_t j = 0; j < n; j++) y[j] = x[j] - total / static_cast<double>(n);
  }
  AxisRows<2> rows_;
};
PG_KERNEL("new_op", NewOp);

}  // namespace
}  // namespace cpu
