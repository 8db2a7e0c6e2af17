// SPDX-License-Identifier: Apache-2.0
// resample(x) -> y and resample_grad(dy, x) -> dx, where of x only the shape counts: planes [in, after], of which the
// rows are put together, or, of the last axis, rows; resample2d and its gradient: both of the last two axes.
#include "kernels/resample_planes.hpp"
#include "kernels/windows.hpp"
#include "linalg/dense.hpp"

namespace pg::cpu {
namespace {

void check_resampled(const KernelCall& call) {
  require_float(call, dtype_of(call.in(0)));
  if (dtype_of(call.in(0)) != dtype_of(call.out(0))) fail_support("the result has another dtype");
  if (!is_dense(call.out(0))) fail_support("the result must be dense");
}

uint64_t dense_bytes(const DenseInput& source) {
  Scratch scratch;
  source.get(nullptr, scratch);
  return scratch.bytes();
}

// A longer axis' table is made in pieces where it is run: by then there is memory for the result, which may be smaller
// than the table.
constexpr int64_t kWhole = 1 << 20, kPiece = 1 << 16;
bool is_short(const ResampledAxis& axis) { return axis.in + axis.out <= kWhole; }

class Resample final : public Kernel {
 public:
  static void supports(const KernelCall& call) { check_resampled(call); }
  Resample(const KernelCall& call, Plan& plan) : dtype_(dtype_of(call.out(0))), source_(call.in(0)) {
    backward_ = call.is("resample_grad");
    const pg_tensor &x = backward_ ? call.out(0) : call.in(0), &y = backward_ ? call.in(0) : call.out(0);
    auto axis = static_cast<uint32_t>(call.axis("axis", x.rank));
    for (uint32_t i = 0; i < x.rank; i++) (i < axis ? before_ : after_) *= i == axis ? 1 : x.shape[i];
    axis_ = {static_cast<Resampling>(call.attr<int32_t>("mode")), x.shape[axis], y.shape[axis],
             call.attr<bool>("align_corners"), call.attr<double>("scale")};
    in_ = backward_ ? axis_.out : axis_.in, out_ = backward_ ? axis_.in : axis_.out;
    if (before_ * after_ * out_ == 0) return;
    if (is_short(axis_)) table_ = ResampledRow(axis_, backward_, 0, out_);
    plan.workspace = dense_bytes(source_);
  }
  void launch(const pg_launch& launch) override {
    if (before_ * after_ * out_ == 0) return;
    Scratch scratch(host_pointer(launch.workspace));
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      auto* x = static_cast<const T*>(source_.get(input(launch, 0), scratch));
      auto* y = output<T>(launch, 0);
      if (is_short(axis_)) return run(table_, x, y);
      for (int64_t first = 0; first < out_; first += kPiece)
        run(ResampledRow(axis_, backward_, first, std::min(out_, first + kPiece)), x, y + first * after_);
    });
  }

 private:
  template <class T>
  void run(const ResampledRow& table, const T* x, T* y) const {
    PlanePass pass = after_ == 1 ? PlanePass{nullptr, &table, 1, before_, in_, 0, out_}
                                 : PlanePass{&table, nullptr, before_, in_, after_, out_ * after_, after_};
    PlaneResampler<T>(pass).run(x, y);
  }

  uint32_t dtype_;
  DenseInput source_;
  bool backward_;
  int64_t before_ = 1, after_ = 1, in_, out_;  // in_, out_: of what is read and of what is written
  ResampledAxis axis_;
  ResampledRow table_;  // of the whole axis, where it is short
};

PG_KERNEL("resample", Resample);
PG_KERNEL("resample_grad", Resample);

class Resample2d final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    check_resampled(call);
    for (const ResampledAxis& axis : Axes(call).axis)
      if (!is_short(axis)) fail_support("an axis is too long for tables of both");
  }
  Resample2d(const KernelCall& call, Plan& plan) : dtype_(dtype_of(call.out(0))), source_(call.in(0)) {
    const Axes axes(call);
    const pg_tensor &from = call.in(0), &to = call.out(0);
    if (element_count(to) == 0) return;
    for (int i = 0; i < 2; i++)
      table_[i] = ResampledRow(axes.axis[i], axes.backward, 0, to.shape[to.rank - 2 + static_cast<uint32_t>(i)]);
    const int64_t rows = to.shape[to.rank - 2], columns = to.shape[to.rank - 1];
    pass_ = {nullptr,
             nullptr,
             element_count(to) / (rows * columns),
             from.shape[from.rank - 2],
             from.shape[from.rank - 1],
             rows * columns,
             columns};
    plan.workspace = dense_bytes(source_);
  }
  void launch(const pg_launch& launch) override {
    if (pass_.planes == 0) return;
    Scratch scratch(host_pointer(launch.workspace));
    PlanePass pass = pass_;
    pass.rows = &table_[0], pass.columns = &table_[1];
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      PlaneResampler<T>(pass).run(static_cast<const T*>(source_.get(input(launch, 0), scratch)), output<T>(launch, 0));
    });
  }

 private:
  struct Axes {
    explicit Axes(const KernelCall& call) : backward(call.is("resample2d_grad")) {
      const pg_tensor &x = backward ? call.out(0) : call.in(0), &y = backward ? call.in(0) : call.out(0);
      const char* scale[] = {"scale_rows", "scale_columns"};
      for (uint32_t i = 0; i < 2; i++) {
        axis[i] = {static_cast<Resampling>(call.attr<int32_t>("mode")), x.shape[x.rank - 2 + i],
                   y.shape[y.rank - 2 + i], call.attr<bool>("align_corners"), call.attr<double>(scale[i])};
      }
    }
    bool backward;
    ResampledAxis axis[2];
  };

  uint32_t dtype_;
  DenseInput source_;
  ResampledRow table_[2];
  PlanePass pass_{};
};

PG_KERNEL("resample2d", Resample2d);
PG_KERNEL("resample2d_grad", Resample2d);

}  // namespace
}  // namespace pg::cpu
