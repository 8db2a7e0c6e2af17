// SPDX-License-Identifier: Apache-2.0
// Normalisation of rows, the `dims` trailing axes of x, by statistics of a row's own:
//   layer_norm (Ba, Kiros, Hinton 2016), centred: (x, weight?, bias?) -> y, mean, invstd, and
//     layer_norm_grad (dy, x, weight?, mean, invstd) -> dx, dweight, dbias
//   rms_norm (Zhang, Sennrich 2019), which has neither mean nor bias: (x, weight?) -> y, invstd, and
//     rms_norm_grad (dy, x, weight?, invstd) -> dx, dweight
#pragma once

#include <limits>

#include "kernels/normalise.hpp"
#include "lines.hpp"
#include "simd.hpp"

namespace pg::cpu {

// Short rows, of numbers that are computed with in A, are turned and taken a tile at a time (simd/norm_lines.cpp).
inline bool are_short(const Rows& rows) { return rows.count >= 4 && rows.size >= 1 && rows.size <= ::cpu::kShortLine; }
template <class A>
constexpr int64_t kTileRows = ::cpu::kLines<A>;
template <class A>
struct RowTile {
  alignas(64) A element[::cpu::kShortLine * kTileRows<A>];

  template <class T>
  PG_INLINE void load(const T* rows, int64_t count, int64_t size, A* buffer) {
    const void* lines = rows;
    if constexpr (!std::is_same_v<T, A>) {
      for (int64_t i = 0; i < count * size; i++) buffer[i] = pg::cpu::load<T>(rows[i]);
      lines = buffer;
    }
    ::cpu::simd->turn_in[sizeof(A) == 8](lines, count, size, element);
  }
  template <class T>
  PG_INLINE void store(T* rows, int64_t count, int64_t size, A* buffer) const {
    void* lines = rows;
    if constexpr (!std::is_same_v<T, A>) lines = buffer;
    ::cpu::simd->turn_out[sizeof(A) == 8](element, count, size, lines);
    if constexpr (!std::is_same_v<T, A>) {
      for (int64_t i = 0; i < count * size; i++) rows[i] = pg::cpu::store<T>(buffer[i]);
    }
  }
};

template <bool kCentred>
class NormRows final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_norm_dtypes(call, 0, 1, kCentred ? 2 : 1);
    Rows(call, call.in(0));
  }
  NormRows(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))),
        rows_(call, call.in(0)),
        x_(call.in(0)),
        weight_(call, 1),
        eps_(call.runtime<double>("eps")),
        has_mean_(kCentred && call.has_output(kMean)),
        has_invstd_(call.has_output(kInvstd)) {
    if (kCentred) bias_ = Parameter(call, 2);
    Scratch scratch;
    x_.get(nullptr, scratch), weight_.reserve(scratch), bias_.reserve(scratch);
    for (int i = 0; i < (kCentred ? 2 : 1); i++) scratch.take(rows_.bytes());
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    if (rows_.count * rows_.size == 0) return;
    with_float(dtype_, [&](auto type) { run<typename decltype(type)::type>(launch); });
  }

  // ---- for regions (lines.hpp) ----

  static std::unique_ptr<::cpu::Lines> make_lines(const KernelCall& call) {
    supports(call);
    const uint32_t rank = call.in(0).rank;
    const auto dims = static_cast<uint32_t>(call.attr<int64_t>("dims"));
    ::cpu::last_axes(call, static_cast<uint32_t>((uint64_t{1} << rank) - (uint64_t{1} << (rank - dims))));
    return std::make_unique<Part>(call, dims);
  }

 private:
  class Part final : public ::cpu::Lines {
   public:
    Part(const KernelCall& call, uint32_t dims) : Lines(dims), kernel_(call, plan_) {}
    uint64_t shared_bytes() const override { return plan_.workspace; }
    void share(const pg_launch& launch, char* room) const override {
      with_float(kernel_.dtype_, [&](auto type) {
        Scratch scratch(room);
        kernel_.template read<typename decltype(type)::type>(launch, scratch);
      });
    }
    void run(const pg_launch& launch, const char* shared, const char* const* in, char* const* out, int64_t first,
             int64_t last) const override {
      with_float(kernel_.dtype_, [&](auto type) {
        using T = typename decltype(type)::type;
        using A = Statistic<T>;
        Scratch scratch(const_cast<char*>(shared));  // as `share` has taken it
        Shared<T> values;
        values.weight = static_cast<const A*>(scratch.take(kernel_.rows_.bytes()));
        values.bias = kCentred ? static_cast<const A*>(scratch.take(kernel_.rows_.bytes())) : nullptr;
        values.eps = kernel_.template eps_for<A>(launch);
        auto statistic = [&](uint32_t i) { return reinterpret_cast<A*>(out[i]); };
        const Targets<T> to = {reinterpret_cast<T*>(out[0]), kernel_.has_mean_ ? statistic(kMean) : nullptr,
                               kernel_.has_invstd_ ? statistic(kInvstd) : nullptr};
        kernel_.normalise(reinterpret_cast<const T*>(in[0]), values, to, first, last);
      });
    }
    int cost() const override { return 4; }

   private:
    Plan plan_;
    NormRows kernel_;
  };

  static constexpr uint32_t kMean = 1, kInvstd = kCentred ? 2 : 1;  // outputs

  template <class T>
  void run(const pg_launch& launch) {
    Scratch scratch(host_pointer(launch.workspace));
    auto* x = static_cast<const T*>(x_.get(input(launch, 0), scratch));
    const Shared<T> shared = read<T>(launch, scratch);
    const Targets<T> out = {output<T>(launch, 0), has_mean_ ? output<Statistic<T>>(launch, kMean) : nullptr,
                            has_invstd_ ? output<Statistic<T>>(launch, kInvstd) : nullptr};
    parallel_for(rows_.count, rows_.grain(),
                 [&](int64_t begin, int64_t end) { normalise(x, shared, out, begin, end); });
  }

  // What all rows share.
  template <class T>
  struct Shared {
    const Statistic<T>*weight, *bias;
    double eps;
  };
  template <class T>
  struct Targets {
    T* y;
    Statistic<T>*means, *invstds;  // NULL: not wanted
  };
  template <class T>
  Shared<T> read(const pg_launch& launch, Scratch& scratch) const {
    using A = Statistic<T>;
    auto* weight = static_cast<A*>(scratch.take(rows_.bytes()));
    auto* bias = kCentred ? static_cast<A*>(scratch.take(rows_.bytes())) : nullptr;
    weight_.read<A>(launch, scratch, rows_.size, 1, weight);
    if (kCentred) bias_.read<A>(launch, scratch, rows_.size, 0, bias);
    return {weight, bias, eps_for<A>(launch)};
  }
  template <class A>
  double eps_for(const pg_launch& launch) const {
    const double eps = eps_(launch);
    return !kCentred && !(eps > 0) ? static_cast<double>(std::numeric_limits<A>::epsilon()) : eps;
  }

  // Rows [begin, end) on this thread.
  template <class T, class A = Statistic<T>>
  void normalise(const T* x, const Shared<T>& shared, const Targets<T>& to, int64_t begin, int64_t end) const {
    const int64_t size = rows_.size;
    const A *weight = shared.weight, *bias = shared.bias;
    A *means = to.means, *invstds = to.invstds;
    T* y = to.y;
    const double eps = shared.eps;
    if (are_short(rows_)) return normalise_short(x, shared, to, begin, end);
    call_vector(
        [=](int64_t first, int64_t last) __attribute__((always_inline)) {
          for (int64_t row = first; row < last; row++) {
            const T* in = x + row * size;
            T* out = y + row * size;
            double n = static_cast<double>(size);
            A mean = 0;
            if constexpr (kCentred) {
              double sum = sum_lanes<A>(
                  size, [=](int64_t i) __attribute__((always_inline)) { return load<T>(in[i]); });
              mean = static_cast<A>(sum / n);
            }
            double squares = sum_lanes<A>(
                size, [=](int64_t i) __attribute__((always_inline)) {
                  A d = load<T>(in[i]);
                  if constexpr (kCentred) d -= mean;
                  return d * d;
                });
            A invstd = static_cast<A>(1 / std::sqrt(squares / n + eps));
            for (int64_t i = 0; i < size; i++) {
              if constexpr (kCentred)
                out[i] = store<T>((load<T>(in[i]) - mean) * invstd * weight[i] + bias[i]);
              else
                out[i] = store<T>(load<T>(in[i]) * invstd * weight[i]);
            }
            if (means != nullptr) means[row] = mean;
            if (invstds != nullptr) invstds[row] = invstd;
          }
        },
        begin, end);
  }

  template <class T, class A = Statistic<T>>
  void normalise_short(const T* x, const Shared<T>& shared, const Targets<T>& to, int64_t begin, int64_t end) const {
    const int64_t size = rows_.size;
    call_vector(
        [=](int64_t first, int64_t last) __attribute__((always_inline)) {
          RowTile<A> tile;
          A buffer[::cpu::kShortLine * kTileRows<A>], mean[kTileRows<A>], invstd[kTileRows<A>];
          for (int64_t row = first; row < last; row += kTileRows<A>) {
            int64_t count = std::min(kTileRows<A>, last - row);
            tile.load(x + row * size, count, size, buffer);
            ::cpu::simd->norm_lines[sizeof(A) == 8](tile.element, size, kCentred, shared.eps, shared.weight,
                                                    shared.bias, tile.element, mean, invstd);
            tile.store(to.y + row * size, count, size, buffer);
            if (to.means != nullptr) std::copy_n(mean, count, to.means + row);
            if (to.invstds != nullptr) std::copy_n(invstd, count, to.invstds + row);
          }
        },
        begin, end);
  }

  uint32_t dtype_;
  Rows rows_;
  DenseInput x_;
  Parameter weight_, bias_;
  Runtime<double> eps_;
  bool has_mean_, has_invstd_;
};

// dweight and dbias are sums over rows: made in a fixed number of partial sums, so that they do not depend on the
// number of threads.
template <bool kCentred>
class NormRowsGrad final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_norm_dtypes(call, 1, 2, kInvstd);
    if (dtype_of(call.in(0)) != dtype_of(call.in(1))) fail_support("dy and x must share one dtype");
    for (uint32_t i = 3; i <= kInvstd; i++)
      if (dtype_of(call.in(i)) != statistics_dtype(dtype_of(call.in(1))))
        fail_support(format("input %u must have the statistics' dtype", i));
    Rows(call, call.in(1));
  }
  NormRowsGrad(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(1))),
        rows_(call, call.in(1)),
        dy_(call.in(0)),
        x_(call.in(1)),
        invstd_(call.in(kInvstd)),
        weight_(call, 2),
        outputs_(call.output_count()),
        parts_(std::min<int64_t>(kParts, rows_.count)) {
    for (uint32_t i = 1; i < outputs_; i++) output_dtype_[i] = dtype_of(call.out(i));
    Scratch scratch;
    dy_.get(nullptr, scratch), x_.get(nullptr, scratch), invstd_.get(nullptr, scratch);
    if (kCentred) mean_ = DenseInput(call.in(kMean)), mean_.get(nullptr, scratch);
    weight_.reserve(scratch);
    for (int64_t i = 0; i < kSums * (parts_ + 1) + 1; i++) scratch.take(rows_.bytes());
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    if (rows_.size > 0) with_float(dtype_, [&](auto type) { run<typename decltype(type)::type>(launch); });
  }

 private:
  static constexpr uint32_t kMean = 3, kInvstd = kCentred ? 4 : 3;  // inputs
  static constexpr int64_t kParts = 16, kSums = kCentred ? 2 : 1;   // dweight, and dbias

  template <class T>
  void run(const pg_launch& launch) {
    using A = Statistic<T>;
    Scratch scratch(host_pointer(launch.workspace));
    auto* dy = static_cast<const T*>(dy_.get(input(launch, 0), scratch));
    auto* x = static_cast<const T*>(x_.get(input(launch, 1), scratch));
    auto* invstd = static_cast<const A*>(invstd_.get(input(launch, kInvstd), scratch));
    const A* mean = kCentred ? static_cast<const A*>(mean_.get(input(launch, kMean), scratch)) : nullptr;
    auto vector = [&] { return static_cast<A*>(scratch.take(rows_.bytes())); };
    A *weight = vector(), *sums[kSums], *parts[kSums * kParts];
    for (A*& sum : sums) sum = vector();
    for (int64_t i = 0; i < kSums * parts_; i++) parts[i] = vector();
    weight_.read<A>(launch, scratch, rows_.size, 1, weight);
    if (are_short(rows_))
      differentiate_short(dy, x, output<T>(launch, 0), mean, invstd, weight, parts);
    else
      differentiate(dy, x, output<T>(launch, 0), mean, invstd, weight, parts);
    for (uint32_t i = 0; i < kSums && i + 1 < outputs_; i++) {
      add_parts(parts + i * parts_, sums[i]);
      write_parameter(output_dtype_[i + 1], sums[i], rows_.size, output(launch, i + 1));
    }
  }

  // With xh = (x - mean) invstd and g = dy weight: dx = invstd (g - mean(g) - xh mean(g xh)); not centred, mean and
  // mean(g) are 0.
  template <class T, class A = Statistic<T>>
  void differentiate(const T* dy, const T* x, T* dx, const A* mean, const A* invstd, const A* weight,
                     A* const* parts) const {
    int64_t size = rows_.size, count = rows_.count, pieces = parts_;
    int64_t grain = std::max<int64_t>(1, 8192 * pieces / std::max<int64_t>(1, count * size));
    vector_for(
        pieces, grain, [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
          for (int64_t part = begin; part < end; part++) {
            A *dweight = parts[part], *dbias = kCentred ? parts[pieces + part] : nullptr;
            for (int64_t i = 0; i < size; i++) {
              dweight[i] = 0;
              if constexpr (kCentred) dbias[i] = 0;
            }
            for (int64_t row = count * part / pieces; row < count * (part + 1) / pieces; row++) {
              const T *d = dy + row * size, *in = x + row * size;
              T* out = dx + row * size;
              A m = kCentred ? mean[row] : A(0), s = invstd[row], shift = 0;
              double n = static_cast<double>(size);
              if constexpr (kCentred) {
                double sum = sum_lanes<A>(
                    size, [=](int64_t i) __attribute__((always_inline)) { return load<T>(d[i]) * weight[i]; });
                shift = static_cast<A>(sum / n);
              }
              auto normal = [=](int64_t i) __attribute__((always_inline)) {
                if constexpr (kCentred) return (load<T>(in[i]) - m) * s;
                return load<T>(in[i]) * s;
              };
              double along = sum_lanes<A>(
                  size, [=](int64_t i)
                            __attribute__((always_inline)) { return load<T>(d[i]) * weight[i] * normal(i); });
              A slope = static_cast<A>(along / n);
              for (int64_t i = 0; i < size; i++) {
                A xh = normal(i), g = load<T>(d[i]), change = g * weight[i];
                dweight[i] += g * xh;
                if constexpr (kCentred) dbias[i] += g, change -= shift;
                out[i] = store<T>(s * (change - xh * slope));
              }
            }
          }
        });
  }

  template <class T, class A = Statistic<T>>
  void differentiate_short(const T* dy, const T* x, T* dx, const A* mean, const A* invstd, const A* weight,
                           A* const* parts) const {
    int64_t size = rows_.size, rows = rows_.count, pieces = parts_;
    int64_t grain = std::max<int64_t>(1, 8192 * pieces / std::max<int64_t>(1, rows * size));
    vector_for(
        pieces, grain, [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
          RowTile<A> dy_tile, x_tile, dweight, dbias;
          A buffer[::cpu::kShortLine * kTileRows<A>], m[kTileRows<A>], s[kTileRows<A>];
          for (int64_t part = begin; part < end; part++) {
            std::fill_n(dweight.element, size * kTileRows<A>, A(0));
            std::fill_n(dbias.element, size * kTileRows<A>, A(0));
            int64_t last = rows * (part + 1) / pieces;
            for (int64_t row = rows * part / pieces; row < last; row += kTileRows<A>) {
              int64_t count = std::min(kTileRows<A>, last - row);
              std::fill_n(m, kTileRows<A>, A(0));  // of rows that are not there
              std::fill_n(s, kTileRows<A>, A(0));
              if constexpr (kCentred) std::copy_n(mean + row, count, m);
              std::copy_n(invstd + row, count, s);
              dy_tile.load(dy + row * size, count, size, buffer);
              x_tile.load(x + row * size, count, size, buffer);
              ::cpu::simd->norm_grad_lines[sizeof(A) == 8](dy_tile.element, x_tile.element, size, kCentred, m, s,
                                                           weight, x_tile.element, dweight.element, dbias.element);
              x_tile.store(dx + row * size, count, size, buffer);
            }
            add_lanes(dweight.element, size, parts[part]);
            if constexpr (kCentred) add_lanes(dbias.element, size, parts[pieces + part]);
          }
        });
  }
  template <class A>
  PG_INLINE static void add_lanes(const A* tile, int64_t size, A* sums) {
    for (int64_t i = 0; i < size; i++) {
      A sum = 0;
      for (int64_t lane = 0; lane < kTileRows<A>; lane++) sum += tile[i * kTileRows<A> + lane];
      sums[i] = sum;
    }
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

}  // namespace pg::cpu
