// SPDX-License-Identifier: Apache-2.0
// rms_norm(x, weight?) -> y, invstd and rms_norm_grad(dy, x, weight?, invstd) -> dx, dweight. As in layer_norm.cpp,
// without a mean and a bias.
#include <limits>

#include "kernels/normalise.hpp"

namespace pg::cpu {
namespace {

class RmsNorm final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_norm_dtypes(call, 0, 1, 1);
    Rows(call, call.in(0));
  }
  RmsNorm(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))),
        rows_(call, call.in(0)),
        x_(call.in(0)),
        weight_(call, 1),
        eps_(call.runtime<double>("eps")),
        outputs_(call.output_count()) {
    Scratch scratch;
    x_.get(nullptr, scratch), weight_.reserve(scratch);
    scratch.take(rows_.bytes());
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    if (rows_.count * rows_.size == 0) return;
    with_float(dtype_, [&](auto type) { run<typename decltype(type)::type>(launch); });
  }

 private:
  template <class T>
  void run(const pg_launch& launch) {
    using A = Statistic<T>;
    Scratch scratch(host_pointer(launch.workspace));
    auto* x = static_cast<const T*>(x_.get(input(launch, 0), scratch));
    auto* weight = static_cast<A*>(scratch.take(rows_.bytes()));
    weight_.read<A>(launch, scratch, rows_.size, 1, weight);
    A* invstds = outputs_ > 1 ? output<A>(launch, 1) : nullptr;
    T* y = output<T>(launch, 0);
    double given = eps_(launch), eps = given > 0 ? given : static_cast<double>(std::numeric_limits<A>::epsilon());
    int64_t size = rows_.size;
    vector_for(
        rows_.count, rows_.grain(), [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
          for (int64_t row = begin; row < end; row++) {
            const T* in = x + row * size;
            T* out = y + row * size;
            double squares = sum_lanes<A>(
                size, [=](int64_t i) __attribute__((always_inline)) {
                  A v = load<T>(in[i]);
                  return v * v;
                });
            A invstd = static_cast<A>(1 / std::sqrt(squares / static_cast<double>(size) + eps));
            for (int64_t i = 0; i < size; i++) out[i] = store<T>(load<T>(in[i]) * invstd * weight[i]);
            if (invstds != nullptr) invstds[row] = invstd;
          }
        });
  }

  uint32_t dtype_;
  Rows rows_;
  DenseInput x_;
  Parameter weight_;
  Runtime<double> eps_;
  uint32_t outputs_;
};

class RmsNormGrad final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_norm_dtypes(call, 1, 2, 3);
    if (dtype_of(call.in(0)) != dtype_of(call.in(1))) fail_support("dy and x must share one dtype");
    if (dtype_of(call.in(3)) != statistics_dtype(dtype_of(call.in(1))))
      fail_support("invstd must have the statistics' dtype");
    Rows(call, call.in(1));
  }
  RmsNormGrad(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(1))),
        rows_(call, call.in(1)),
        dy_(call.in(0)),
        x_(call.in(1)),
        invstd_(call.in(3)),
        weight_(call, 2),
        outputs_(call.output_count()),
        parts_(std::min<int64_t>(kParts, rows_.count)) {
    if (outputs_ > 1) weight_dtype_ = dtype_of(call.out(1));
    Scratch scratch;
    dy_.get(nullptr, scratch), x_.get(nullptr, scratch), invstd_.get(nullptr, scratch), weight_.reserve(scratch);
    for (int64_t i = 0; i < parts_ + 2; i++) scratch.take(rows_.bytes());
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    if (rows_.size > 0) with_float(dtype_, [&](auto type) { run<typename decltype(type)::type>(launch); });
  }

 private:
  static constexpr int64_t kParts = 16;  // of dweight: fixed, so that sums do not depend on the number of threads

  template <class T>
  void run(const pg_launch& launch) {
    using A = Statistic<T>;
    Scratch scratch(host_pointer(launch.workspace));
    auto* dy = static_cast<const T*>(dy_.get(input(launch, 0), scratch));
    auto* x = static_cast<const T*>(x_.get(input(launch, 1), scratch));
    auto* invstd = static_cast<const A*>(invstd_.get(input(launch, 3), scratch));
    auto vector = [&] { return static_cast<A*>(scratch.take(rows_.bytes())); };
    A *weight = vector(), *dweight = vector(), *parts[kParts];
    for (int64_t i = 0; i < parts_; i++) parts[i] = vector();
    weight_.read<A>(launch, scratch, rows_.size, 1, weight);
    differentiate(dy, x, output<T>(launch, 0), invstd, weight, parts);
    if (outputs_ < 2) return;
    std::fill_n(dweight, rows_.size, A(0));
    for (int64_t part = 0; part < parts_; part++) {
      for (int64_t i = 0; i < rows_.size; i++) dweight[i] += parts[part][i];
    }
    write_parameter(weight_dtype_, dweight, rows_.size, output(launch, 1));
  }

  // With xh = x invstd and g = dy weight: dx = invstd (g - xh mean(g xh)).
  template <class T, class A = Statistic<T>>
  void differentiate(const T* dy, const T* x, T* dx, const A* invstd, const A* weight, A* const* parts) const {
    int64_t size = rows_.size, count = rows_.count, pieces = parts_;
    int64_t grain = std::max<int64_t>(1, 8192 * pieces / std::max<int64_t>(1, count * size));
    vector_for(
        pieces, grain, [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
          for (int64_t part = begin; part < end; part++) {
            A* dweight = parts[part];
            for (int64_t i = 0; i < size; i++) dweight[i] = 0;
            for (int64_t row = count * part / pieces; row < count * (part + 1) / pieces; row++) {
              const T *d = dy + row * size, *in = x + row * size;
              T* out = dx + row * size;
              A s = invstd[row];
              double along = sum_lanes<A>(
                  size, [=](int64_t i) __attribute__((always_inline)) {
                    return load<T>(d[i]) * weight[i] * (load<T>(in[i]) * s);
                  });
              A slope = static_cast<A>(along / static_cast<double>(size));
              for (int64_t i = 0; i < size; i++) {
                A xh = load<T>(in[i]) * s, g = load<T>(d[i]);
                dweight[i] += g * xh;
                out[i] = store<T>(s * (g * weight[i] - xh * slope));
              }
            }
          }
        });
  }

  uint32_t dtype_;
  Rows rows_;
  DenseInput dy_, x_, invstd_;
  Parameter weight_;
  uint32_t outputs_, weight_dtype_ = 0;
  int64_t parts_;
};

PG_KERNEL("rms_norm", RmsNorm);
PG_KERNEL("rms_norm_grad", RmsNormGrad);

}  // namespace
}  // namespace pg::cpu
