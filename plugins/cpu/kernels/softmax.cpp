// SPDX-License-Identifier: Apache-2.0
// softmax and log_softmax along an axis: in float64 for float64, in float32 for the rest.
#include <cmath>

#include "axis_rows.hpp"
#include "softmax_row.hpp"

namespace cpu {
namespace {

struct Softmax final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    Storage s = storage_of(call.in(0));
    if (!is_float(s) || storage_of(call.out(0)) != s) refuse(call);
  }
  Softmax(const pg::KernelCall& call, pg::Plan&)
      : log_(call.is("log_softmax")), rows_({&call.out(0), &call.in(0)}, call.axis("axis", call.in(0).rank)) {}

  void launch(const pg_launch& launch) override {
    void* out = pg::output(launch, 0);
    const void* x = pg::input(launch, 0);
    if (rows_.length() == 0) return;  // of lines without elements there may be very many
    bool wide = rows_.storage(0) == sF64;
    Storage type = wide ? sF64 : sF32;
    rows_.each_tile(0b11, kSoftmaxColumns, [&](int64_t begin, int64_t end) {
      std::vector<char> scratch;
      if (!rows_.direct(0, type) || !rows_.direct(1, type)) scratch.resize(static_cast<size_t>(rows_.length()) * 8);
      for (int64_t i = begin, width = 1; i < end; i += width) {
        width = wide ? 1 : rows_.beside(0b11, i, end, kSoftmaxColumns);
        if (width > 1) {
          across(rows_.line(0, out, i), rows_.line(1, x, i), width, scratch);
          continue;
        }
        void* target = rows_.line(0, out, i);
        const void* source = rows_.load(1, rows_.line(1, x, i), type, scratch.data());
        void* result = rows_.direct(0, type) ? target : scratch.data();
        softmax_row(wide, log_, source, result, rows_.length());
        if (result != target) rows_.store(0, target, type, result);
      }
    });
  }

 private:
  // Lines that lie side by side.
  void across(void* out, const void* x, int64_t width, std::vector<char>& scratch) const {
    if (rows_.storage(0) != sF32) scratch.resize(static_cast<size_t>(rows_.length() * kSoftmaxColumns) * sizeof(float));
    int64_t x_step, y_step;
    const void* from = rows_.load_tile(1, x, sF32, width, scratch.data(), x_step);
    void* to = rows_.tile(0, out, sF32, width, scratch.data(), y_step);
    (log_ ? simd->log_softmax_columns : simd->softmax_columns)(static_cast<const float*>(from), x_step,
                                                               static_cast<float*>(to), y_step, rows_.length(), width);
    rows_.store_tile(0, out, sF32, width, scratch.data());
  }

  bool log_;
  AxisRows<2> rows_;
};
PG_KERNEL("softmax", Softmax);
PG_KERNEL("log_softmax", Softmax);

}  // namespace
}  // namespace cpu
