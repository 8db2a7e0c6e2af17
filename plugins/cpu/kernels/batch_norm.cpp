// SPDX-License-Identifier: Apache-2.0
// batch_norm(x, weight?, bias?, running_mean?, running_var?) -> y, mean, invstd, the same with a ReLU behind y
// (batch_norm_activation), and batch_norm_grad(dy, x, weight?, mean, invstd) -> dx, dweight, dbias. x is [n, c, s]: a
// task is a few channels, whose elements are read twice (statistics, then result) while they are in cache. Long planes
// are summed along s; short ones (s = 1 after a linear layer) down n, many channels side by side. Where the result lies
// channels-last, all pixels are rows of [n * s, c, 1].
#include "kernels/channels_last.hpp"
#include "kernels/normalise.hpp"
#include "storage.hpp"

namespace pg::cpu {
namespace {

constexpr int64_t kLongPlane = 32, kShortWidth = 128, kStretch = 512;
constexpr int64_t kRows = 256;       // that are added up before the sum goes on in double
constexpr int64_t kLeastWidth = 16;  // channels of a task, of pixels

struct Channels {
  int64_t n = 1, c = 1, s = 1, block = 1;  // block: channels of a task

  Channels() = default;
  explicit Channels(const pg_tensor& x, bool channels_last = false) {
    if (x.rank < 2) fail_argument("batch_norm: x must have at least 2 axes");
    n = x.shape[0], c = x.shape[1];
    for (uint32_t i = 2; i < x.rank; i++) s *= x.shape[i];
    if (channels_last) {
      n *= s, s = 1;
      const int64_t share = (c + thread_count() - 1) / thread_count();
      block = std::clamp((share + kLeastWidth - 1) / kLeastWidth * kLeastWidth, kLeastWidth, kShortWidth);
    } else if (s < kLongPlane) {
      block = std::max<int64_t>(1, kShortWidth / std::max<int64_t>(s, 1));
    }
  }
  bool is_long() const { return s >= kLongPlane; }
  int64_t blocks() const { return (c + block - 1) / block; }
  int64_t grain() const { return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, n * s * block)); }
};

// sums[q][channel] += the sums over n and s of f(position, channel)[q], for the channels of one block.
template <class A, int64_t Count, class F>
PG_INLINE void sum_block(const Channels& g, int64_t first, int64_t channels, const F& f, double (*sums)[kShortWidth]) {
  if (g.is_long()) {
    for (int64_t i = 0; i < g.n; i++) {
      int64_t at = (i * g.c + first) * g.s;
      for (int64_t q = 0; q < Count; q++) {
        sums[q][0] += sum_lanes<A>(
            g.s, [&](int64_t j) __attribute__((always_inline)) { return f(at + j, 0, q); });
      }
    }
    return;
  }
  alignas(64) A wide[Count][kShortWidth];
  int64_t width = channels * g.s;
  for (int64_t row = 0; row < g.n; row += kRows) {
    const int64_t end_row = std::min(g.n, row + kRows);
    for (int64_t q = 0; q < Count; q++) {
      for (int64_t j = 0; j < width; j++) wide[q][j] = 0;
      for (int64_t i = row; i < end_row; i++) {
        int64_t at = (i * g.c + first) * g.s;
        if (g.s == 1) {
          for (int64_t j = 0; j < width; j++) wide[q][j] += f(at + j, j, q);
        } else {
          for (int64_t c = 0, j = 0; c < channels; c++) {
            for (int64_t end = j + g.s; j < end; j++) wide[q][j] += f(at + j, c, q);
          }
        }
      }
      for (int64_t c = 0, j = 0; c < channels; c++) {
        for (int64_t end = j + g.s; j < end; j++) sums[q][c] += static_cast<double>(wide[q][j]);
      }
    }
  }
}

// row[j] = f(j). float16 by way of float32 and the processor's own conversion: compilers put a branch into ours.
template <class T, class F>
PG_INLINE void write_row(T* row, int64_t count, const F& f) {
  if constexpr (!std::is_same_v<T, Half>) {
    for (int64_t j = 0; j < count; j++) row[j] = store<T>(f(j));
  } else {
    alignas(64) float wide[kStretch];
    for (int64_t j = 0; j < count; j += kStretch) {
      const int64_t some = std::min(kStretch, count - j);
      for (int64_t k = 0; k < some; k++) wide[k] = f(j + k);
      ::cpu::convert(::cpu::sF32, ::cpu::sF16, wide, row + j, some);
    }
  }
}

// y = f(position, channel of the block) for every element of the block, or relu of it, in a pass of its own over what
// is in the nearest cache (in one pass compilers make no vectors of it); large results go past the caches.
template <bool activated, class T, class F>
PG_INLINE void write_block(const Channels& g, int64_t first, int64_t channels, T* y, const F& f) {
  const bool past = g.n * g.c * g.s * static_cast<int64_t>(sizeof(T)) >= ::cpu::kStreamBytes;
  auto finish = [](T * row, int64_t count) __attribute__((always_inline)) {
    for (int64_t j = 0; activated && j < count; j++) row[j] = relu(row[j]);
  };
  for (int64_t i = 0; i < g.n; i++) {
    int64_t at = (i * g.c + first) * g.s, width = channels * g.s;
    if (g.is_long() && past) {
      alignas(64) T stretch[kStretch];
      for (int64_t j = 0; j < g.s; j += kStretch) {
        const int64_t some = std::min(kStretch, g.s - j);
        write_row(
            stretch, some, [&](int64_t k) __attribute__((always_inline)) { return f(at + j + k, 0); });
        finish(stretch, some);
        ::cpu::simd->stream_copy(y + at + j, stretch, some * static_cast<int64_t>(sizeof(T)));
      }
      continue;
    }
    if (g.is_long()) {
      write_row(
          y + at, g.s, [&](int64_t j) __attribute__((always_inline)) { return f(at + j, 0); });
    } else if (g.s == 1) {
      write_row(
          y + at, width, [&](int64_t j) __attribute__((always_inline)) { return f(at + j, j); });
    } else {
      for (int64_t c = 0, j = 0; c < channels; c++) {
        for (int64_t end = j + g.s; j < end; j++) y[at + j] = store<T>(f(at + j, c));
      }
    }
    finish(y + at, g.is_long() ? g.s : width);
  }
  if (past) ::cpu::simd->stream_fence();
}

template <bool activated>
class BatchNorm final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_norm_dtypes(call, 0, 1, 4, true);
    Channels{call.in(0)};
  }
  BatchNorm(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))),
        g_(call.in(0), lies_channels_last(call.out(0))),
        x_(dense_input(call.in(0), lies_channels_last(call.out(0)))),
        training_(call.attr<bool>("training")),
        momentum_(call.runtime<double>("momentum")),
        eps_(call.runtime<double>("eps")) {
    for (uint32_t i = 0; i < 4; i++) parameters_[i] = Parameter(call, i + 1);
    has_mean_ = call.has_output(1), has_invstd_ = call.has_output(2);
    Scratch scratch;
    x_.get(nullptr, scratch);
    for (int i = 0; i < 5; i++) scratch.take(static_cast<uint64_t>(g_.c) * 8);
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    with_float(dtype_, [&](auto type) { run<typename decltype(type)::type>(launch); });
  }

 private:
  template <class T>
  void run(const pg_launch& launch) {
    using A = Statistic<T>;
    Scratch scratch(host_pointer(launch.workspace));
    auto* x = static_cast<const T*>(x_.get(input(launch, 0), scratch));
    auto vector = [&] { return static_cast<A*>(scratch.take(static_cast<uint64_t>(g_.c) * 8)); };
    A *weight = vector(), *bias = vector(), *mean = vector(), *var = vector(), *invstd = vector();
    parameters_[0].read<A>(launch, scratch, g_.c, 1, weight), parameters_[1].read<A>(launch, scratch, g_.c, 0, bias);
    if (!training_) {
      parameters_[2].read<A>(launch, scratch, g_.c, 0, mean), parameters_[3].read<A>(launch, scratch, g_.c, 1, var);
    }
    normalise(x, output<T>(launch, 0), weight, bias, mean, var, invstd, eps_(launch));
    if (training_) track(launch, mean, var);
    if (has_mean_) std::copy_n(mean, g_.c, output<A>(launch, 1));
    if (has_invstd_) std::copy_n(invstd, g_.c, output<A>(launch, 2));
  }

  template <class T, class A = Statistic<T>>
  void normalise(const T* x, T* y, const A* weight, const A* bias, A* mean, A* var, A* invstd, double eps) const {
    const Channels& g = g_;
    const bool training = training_;
    vector_for(
        g.blocks(), g.grain(), [ =, &g ](int64_t begin, int64_t end) __attribute__((always_inline)) {
          for (int64_t task = begin; task < end; task++) {
            int64_t first = task * g.block, channels = std::min(g.block, g.c - first);
            if (training) statistics<T>(g, x, first, channels, mean, var);
            A scale[kShortWidth], shift[kShortWidth], center[kShortWidth];
            for (int64_t c = 0; c < channels; c++) {
              invstd[first + c] = static_cast<A>(1 / std::sqrt(static_cast<double>(var[first + c]) + eps));
              scale[c] = invstd[first + c] * weight[first + c], shift[c] = bias[first + c], center[c] = mean[first + c];
            }
            write_block<activated>(
                g, first, channels, y, [&](int64_t at, int64_t c) __attribute__((always_inline)) {
                  return (load<T>(x[at]) - center[c]) * scale[c] + shift[c];
                });
          }
        });
  }

  // Mean, then the mean square distance from it: two passes, for the variance of data far from zero.
  template <class T, class A = Statistic<T>>
  PG_INLINE static void statistics(const Channels& g, const T* x, int64_t first, int64_t channels, A* mean, A* var) {
    double sums[1][kShortWidth] = {}, squares[1][kShortWidth] = {};
    double count = static_cast<double>(g.n * g.s);
    auto value = [&](int64_t at, int64_t, int64_t) __attribute__((always_inline)) { return load<T>(x[at]); };
    sum_block<A, 1>(g, first, channels, value, sums);
    for (int64_t c = 0; c < channels; c++) mean[first + c] = static_cast<A>(sums[0][c] / count);
    const A* center = mean + first;
    auto square = [&](int64_t at, int64_t c, int64_t) __attribute__((always_inline)) {
      A d = load<T>(x[at]) - center[c];
      return d * d;
    };
    sum_block<A, 1>(g, first, channels, square, squares);
    for (int64_t c = 0; c < channels; c++) var[first + c] = static_cast<A>(squares[0][c] / count);
  }

  template <class A>
  void track(const pg_launch& launch, const A* mean, const A* var) const {
    double m = momentum_(launch), count = static_cast<double>(g_.n * g_.s), unbiased = count / (count - 1);
    if (count == 0) return;
    parameters_[2].update(launch, g_.c,
                          [&](int64_t i, double old) { return (1 - m) * old + m * static_cast<double>(mean[i]); });
    parameters_[3].update(launch, g_.c, [&](int64_t i, double old) {
      return (1 - m) * old + m * unbiased * static_cast<double>(var[i]);
    });
  }

  uint32_t dtype_;
  Channels g_;
  DenseInput x_;
  bool training_, has_mean_, has_invstd_;
  Runtime<double> momentum_, eps_;
  Parameter parameters_[4];  // weight, bias, running mean, running variance
};

class BatchNormGrad final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_norm_dtypes(call, 1, 2, 4, true);
    if (dtype_of(call.in(0)) != dtype_of(call.in(1))) fail_support("dy and x must share one dtype");
    Channels{call.in(1)};
  }
  BatchNormGrad(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(1))),
        g_(call.in(1), lies_channels_last(call.out(0))),
        dy_(dense_input(call.in(0), lies_channels_last(call.out(0)))),
        x_(dense_input(call.in(1), lies_channels_last(call.out(0)))),
        training_(call.attr<bool>("training")),
        outputs_(call.output_count()) {
    for (uint32_t i = 0; i < 3; i++) parameters_[i] = Parameter(call, i + 2);
    for (uint32_t i = 1; i < outputs_; i++) output_dtype_[i] = dtype_of(call.out(i));
    Scratch scratch;
    dy_.get(nullptr, scratch), x_.get(nullptr, scratch);
    for (int i = 0; i < 5; i++) scratch.take(static_cast<uint64_t>(g_.c) * 8);
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    with_float(dtype_, [&](auto type) { run<typename decltype(type)::type>(launch); });
  }

 private:
  template <class T>
  void run(const pg_launch& launch) {
    using A = Statistic<T>;
    Scratch scratch(host_pointer(launch.workspace));
    auto* dy = static_cast<const T*>(dy_.get(input(launch, 0), scratch));
    auto* x = static_cast<const T*>(x_.get(input(launch, 1), scratch));
    auto vector = [&] { return static_cast<A*>(scratch.take(static_cast<uint64_t>(g_.c) * 8)); };
    A *weight = vector(), *mean = vector(), *invstd = vector(), *dweight = vector(), *dbias = vector();
    parameters_[0].read<A>(launch, scratch, g_.c, 1, weight);
    parameters_[1].read<A>(launch, scratch, g_.c, 0, mean), parameters_[2].read<A>(launch, scratch, g_.c, 1, invstd);
    differentiate(dy, x, output<T>(launch, 0), weight, mean, invstd, dweight, dbias);
    if (outputs_ > 1) write_parameter(output_dtype_[1], dweight, g_.c, output(launch, 1));
    if (outputs_ > 2) write_parameter(output_dtype_[2], dbias, g_.c, output(launch, 2));
  }

  // With xh = (x - mean) invstd: dbias = sum dy, dweight = sum dy xh, and in training
  // dx = weight invstd (dy - mean(dy) - xh mean(dy xh)).
  template <class T, class A = Statistic<T>>
  void differentiate(const T* dy, const T* x, T* dx, const A* weight, const A* mean, const A* invstd, A* dweight,
                     A* dbias) const {
    const Channels& g = g_;
    const bool training = training_;
    vector_for(
        g.blocks(), g.grain(), [ =, &g ](int64_t begin, int64_t end) __attribute__((always_inline)) {
          for (int64_t task = begin; task < end; task++) {
            int64_t first = task * g.block, channels = std::min(g.block, g.c - first);
            double sums[2][kShortWidth] = {}, count = static_cast<double>(g.n * g.s);
            const A* center = mean + first;
            auto terms = [&](int64_t at, int64_t c, int64_t q) __attribute__((always_inline)) {
              A d = load<T>(dy[at]);
              return q == 0 ? d : d * (load<T>(x[at]) - center[c]);
            };
            sum_block<A, 2>(g, first, channels, terms, sums);
            A a[kShortWidth], b[kShortWidth], shift[kShortWidth];
            for (int64_t c = 0; c < channels; c++) {
              double s = static_cast<double>(invstd[first + c]), w = static_cast<double>(weight[first + c]) * s;
              dbias[first + c] = static_cast<A>(sums[0][c]);
              dweight[first + c] = count == 0 ? A(0) : static_cast<A>(sums[1][c] * s);  // of nothing, s is NaN
              a[c] = static_cast<A>(w);
              b[c] = training ? static_cast<A>(-w * s * s * sums[1][c] / count) : A(0);
              shift[c] = training ? static_cast<A>(-w * sums[0][c] / count) : A(0);
            }
            write_block<false>(
                g, first, channels, dx, [&](int64_t at, int64_t c) __attribute__((always_inline)) {
                  return a[c] * load<T>(dy[at]) + b[c] * (load<T>(x[at]) - center[c]) + shift[c];
                });
          }
        });
  }

  uint32_t dtype_;
  Channels g_;
  DenseInput dy_, x_;
  bool training_;
  uint32_t outputs_, output_dtype_[3] = {};
  Parameter parameters_[3];  // weight, mean, invstd
};

constexpr uint32_t kHidden = 1u << 1 | 1u << 2;

PG_KERNEL("batch_norm", BatchNorm<false>, PG_KERNEL_ANY_ORDER, 0, kHidden);
PG_KERNEL("batch_norm_activation", BatchNorm<true>, PG_KERNEL_ANY_ORDER, 0, kHidden);
PG_KERNEL("batch_norm_grad", BatchNormGrad, PG_KERNEL_ANY_ORDER);

}  // namespace
}  // namespace pg::cpu
