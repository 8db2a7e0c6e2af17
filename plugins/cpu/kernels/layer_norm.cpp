// SPDX-License-Identifier: Apache-2.0
// layer_norm(x, weight?, bias?) -> y, mean, invstd and layer_norm_grad(dy, x, weight?, mean, invstd) -> dx, dweight,
// dbias. x is rows of the `dims` trailing axes; statistics are a row's. dweight and dbias are sums over rows: made in a
// fixed number of partial sums, so that they do not depend on the number of threads.
#include "kernels/normalise.hpp"

namespace pg::cpu {
namespace {

class LayerNorm final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_norm_dtypes(call, 0, 1, 2);
    Rows(call, call.in(0));
  }
  LayerNorm(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))),
        rows_(call, call.in(0)),
        x_(call.in(0)),
        weight_(call, 1),
        bias_(call, 2),
        eps_(call.runtime<double>("eps")),
        outputs_(call.output_count()) {
    Scratch scratch;
    x_.get(nullptr, scratch), weight_.reserve(scratch), bias_.reserve(scratch);
    scratch.take(rows_.bytes()), scratch.take(rows_.bytes());
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
    auto *weight = static_cast<A*>(scratch.take(rows_.bytes())), *bias = static_cast<A*>(scratch.take(rows_.bytes()));
    weight_.read<A>(launch, scratch, rows_.size, 1, weight), bias_.read<A>(launch, scratch, rows_.size, 0, bias);
    A* means = outputs_ > 1 ? output<A>(launch, 1) : nullptr;
    A* invstds = outputs_ > 2 ? output<A>(launch, 2) : nullptr;
    T* y = output<T>(launch, 0);
    double eps = eps_(launch);
    int64_t size = rows_.size;
    vector_for(
        rows_.count, rows_.grain(), [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
          for (int64_t row = begin; row < end; row++) {
            const T* in = x + row * size;
            T* out = y + row * size;
            double n = static_cast<double>(size);
            A mean =
                static_cast<A>(sum_lanes<A>(
                                   size, [=](int64_t i) __attribute__((always_inline)) { return load<T>(in[i]); }) /
                               n);
            double squares = sum_lanes<A>(
                size, [=](int64_t i) __attribute__((always_inline)) {
                  A d = load<T>(in[i]) - mean;
                  return d * d;
                });
            A invstd = static_cast<A>(1 / std::sqrt(squares / n + eps));
            for (int64_t i = 0; i < size; i++)
              out[i] = store<T>((load<T>(in[i]) - mean) * invstd * weight[i] + bias[i]);
            if (means != nullptr) means[row] = mean;
            if (invstds != nullptr) invstds[row] = invstd;
          }
        });
  }

  uint32_t dtype_;
  Rows rows_;
  DenseInput x_;
  Parameter weight_, bias_;
  Runtime<double> eps_;
  uint32_t outputs_;
};

class LayerNormGrad final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_norm_dtypes(call, 1, 2, 4);
    if (dtype_of(call.in(0)) != dtype_of(call.in(1))) fail_support("dy and x must share one dtype");
    Rows(call, call.in(1));
  }
  LayerNormGrad(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(1))),
        rows_(call, call.in(1)),
        dy_(call.in(0)),
        x_(call.in(1)),
        mean_(call.in(3)),
        invstd_(call.in(4)),
        weight_(call, 2),
        outputs_(call.output_count()) {
    for (uint32_t i : {3u, 4u}) {
      if (dtype_of(call.in(i)) != statistics_dtype(dtype_))
        fail_support("mean and invstd must have the statistics' dtype");
    }
    for (uint32_t i = 1; i < outputs_; i++) output_dtype_[i] = dtype_of(call.out(i));
    parts_ = std::min<int64_t>(kParts, rows_.count);
    Scratch scratch;
    dy_.get(nullptr, scratch), x_.get(nullptr, scratch), mean_.get(nullptr, scratch), invstd_.get(nullptr, scratch);
    weight_.reserve(scratch);
    for (int64_t i = 0; i < 2 * parts_ + 3; i++) scratch.take(rows_.bytes());
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    if (rows_.size > 0) with_float(dtype_, [&](auto type) { run<typename decltype(type)::type>(launch); });
  }

 private:
  static constexpr int64_t kParts = 16;

  template <class T>
  void run(const pg_launch& launch) {
    using A = Statistic<T>;
    Scratch scratch(host_pointer(launch.workspace));
    auto* dy = static_cast<const T*>(dy_.get(input(launch, 0), scratch));
    auto* x = static_cast<const T*>(x_.get(input(launch, 1), scratch));
    auto* mean = static_cast<const A*>(mean_.get(input(launch, 3), scratch));
    auto* invstd = static_cast<const A*>(invstd_.get(input(launch, 4), scratch));
    auto vector = [&] { return static_cast<A*>(scratch.take(rows_.bytes())); };
    A *weight = vector(), *dweight = vector(), *dbias = vector(), *parts[2 * kParts];
    for (int64_t i = 0; i < 2 * parts_; i++) parts[i] = vector();
    weight_.read<A>(launch, scratch, rows_.size, 1, weight);
    differentiate(dy, x, output<T>(launch, 0), mean, invstd, weight, parts);
    add_parts(parts, dweight), add_parts(parts + parts_, dbias);
    if (outputs_ > 1) write_parameter(output_dtype_[1], dweight, rows_.size, output(launch, 1));
    if (outputs_ > 2) write_parameter(output_dtype_[2], dbias, rows_.size, output(launch, 2));
  }

  // With xh = (x - mean) invstd and g = dy weight: dx = invstd (g - mean(g) - xh mean(g xh)).
  template <class T, class A = Statistic<T>>
  void differentiate(const T* dy, const T* x, T* dx, const A* mean, const A* invstd, const A* weight,
                     A* const* parts) const {
    int64_t size = rows_.size, count = rows_.count, pieces = parts_;
    int64_t grain = std::max<int64_t>(1, 8192 * pieces / std::max<int64_t>(1, count * size));
    vector_for(
        pieces, grain, [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
          for (int64_t part = begin; part < end; part++) {
            A *dweight = parts[part], *dbias = parts[pieces + part];
            for (int64_t i = 0; i < size; i++) dweight[i] = dbias[i] = 0;
            for (int64_t row = count * part / pieces; row < count * (part + 1) / pieces; row++) {
              const T *d = dy + row * size, *in = x + row * size;
              T* out = dx + row * size;
              A m = mean[row], s = invstd[row];
              double n = static_cast<double>(size);
              auto first = sum_lanes<A>(
                  size, [=](int64_t i) __attribute__((always_inline)) { return load<T>(d[i]) * weight[i]; });
              auto second = sum_lanes<A>(
                  size, [=](int64_t i) __attribute__((always_inline)) {
                    return load<T>(d[i]) * weight[i] * ((load<T>(in[i]) - m) * s);
                  });
              A shift = static_cast<A>(first / n), slope = static_cast<A>(second / n);
              for (int64_t i = 0; i < size; i++) {
                A xh = (load<T>(in[i]) - m) * s, g = load<T>(d[i]);
                dweight[i] += g * xh, dbias[i] += g;
                out[i] = store<T>(s * (g * weight[i] - shift - xh * slope));
              }
            }
          }
        });
  }

  template <class A>
  void add_parts(A* const* parts, A* sum) const {
    std::fill_n(sum, rows_.size, A(0));
    for (int64_t part = 0; part < parts_; part++) {
      for (int64_t i = 0; i < rows_.size; i++) sum[i] += parts[part][i];
    }
  }

  uint32_t dtype_;
  Rows rows_;
  DenseInput dy_, x_, mean_, invstd_;
  Parameter weight_;
  uint32_t outputs_, output_dtype_[3] = {};
  int64_t parts_;
};

PG_KERNEL("layer_norm", LayerNorm);
PG_KERNEL("layer_norm_grad", LayerNormGrad);

}  // namespace
}  // namespace pg::cpu
