// SPDX-License-Identifier: Apache-2.0
// avg_pool1d, 2d, 3d (x) -> y and their gradients _grad(dy, x) -> dx, where of x only the shape counts. The divisor is
// the window's size within the padded plane, or, without count_include_pad, within the plane, or a number of one's own.
#include "kernels/channels_last.hpp"
#include "kernels/planes.hpp"
#include "kernels/window_lanes.hpp"

namespace pg::cpu::avg_pool {
namespace {

using window_lanes::Floats, window_lanes::kLanes, window_lanes::load_lanes, window_lanes::load_pairs;

// The part of a window along one axis that lies inside, and what it counts in the divisor.
struct Part {
  int64_t begin, end, counted;
};

struct Windows {
  Pool p;
  int64_t divisor;  // instead of the counted elements; 0: those
  bool padded;
  AxisTables<Part> parts;

  Windows(const KernelCall& call, const pg_tensor& x, const pg_tensor& y)
      : p(read_pool(call, x, y)),
        divisor(call.attr<int64_t>("divisor_override")),
        padded(call.attr<bool>("count_include_pad")),
        parts(p, [this](int axis, int64_t o) { return part(axis, o); }) {}
  void at_launch() const {
    parts.at_launch(p, [this](int axis, int64_t o) { return part(axis, o); });
  }
  Part part(int axis, int64_t o) const {
    int64_t from = o * p.stride[axis] - p.padding[axis];
    int64_t to = std::min(from + p.kernel[axis], p.in[axis] + p.padding[axis]);
    Part part{std::max<int64_t>(from, 0), std::min(to, p.in[axis]), to - from};
    if (!padded) part.counted = std::max<int64_t>(0, part.end - part.begin);
    return part;
  }
  // Whether the windows tile the plane, each of them whole.
  bool tile() const {
    bool all = true;
    for (int i = 0; i < 3; i++)
      all = all && p.stride[i] == p.kernel[i] && p.padding[i] == 0 && p.out[i] * p.kernel[i] == p.in[i];
    return all;
  }
  static double counted(const Part& part) { return static_cast<double>(part.counted); }
  double divides(const Part& d, const Part& h, const Part& w) const {
    return divisor != 0 ? static_cast<double>(divisor) : counted(d) * counted(h) * counted(w);
  }
  // body(depths, rows, columns, divisor) for every output in row-major order.
  template <class Body>
  void each(Body&& body) const {
    for (const Part& d : parts[0]) {
      for (const Part& h : parts[1]) {
        for (const Part& w : parts[2]) body(d, h, w, divides(d, h, w));
      }
    }
  }
};

class AvgPool final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_float(call, dtype_of(call.in(0)));
    if (!is_dense(call.out(0))) fail_support("the result must be dense");
    read_pool(call, call.in(0), call.out(0));
  }
  AvgPool(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))), windows_(call, call.in(0), call.out(0)), x_(call.in(0)) {
    Scratch scratch;
    x_.get(nullptr, scratch);
    plan.workspace = scratch.bytes();
    const Pool& p = windows_.p;
    if (dtype_ != PG_F32 || windows_.parts.is_long() || p.planes * p.out_count() == 0) return;
    auto whole = [&](int64_t o) {
      const Part& part = windows_.parts[2][static_cast<size_t>(o)];
      return part.end - part.begin == p.kernel[2] && part.counted == p.kernel[2];
    };
    while (inner_ < p.out[2] && !whole(inner_)) inner_++;
    inner_end_ = inner_;
    while (inner_end_ < p.out[2] && whole(inner_end_)) inner_end_++;
  }
  void launch(const pg_launch& launch) override {
    Scratch scratch(host_pointer(launch.workspace));
    const Pool& p = windows_.p;
    if (p.planes * p.out_count() == 0) return;
    windows_.at_launch();
    if (inner_end_ - inner_ >= kLanes) {
      run_floats(static_cast<const float*>(x_.get(input(launch, 0), scratch)), output<float>(launch, 0));
      return;
    }
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      auto* x = static_cast<const T*>(x_.get(input(launch, 0), scratch));
      auto* y = output<T>(launch, 0);
      int64_t in = p.in_count(), out = p.out_count();
      parallel_for(p.planes, plane_grain(in), [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; plane++) run_plane(x + plane * in, y + plane * out);
      });
    });
  }

 private:
  template <class T>
  void run_plane(const T* x, T* y) const {
    windows_.each([&](const Part& depths, const Part& rows, const Part& columns, double divisor) {
      *y++ = mean_of<T>(x, depths, rows, columns, divisor);
    });
  }
  template <class T>
  PG_INLINE T mean_of(const T* x, const Part& depths, const Part& rows, const Part& columns, double divisor) const {
    const Pool& p = windows_.p;
    Accumulator<T> sum = 0;
    for (int64_t d = depths.begin; d < depths.end; d++) {
      for (int64_t i = rows.begin; i < rows.end; i++) {
        const T* line = x + (d * p.in[1] + i) * p.in[2];
        for (int64_t j = columns.begin; j < columns.end; j++) sum += load<T>(line[j]);
      }
    }
    return store<T>(sum / static_cast<Accumulator<T>>(divisor));
  }

  void run_floats(const float* x, float* y) const {
    const Pool& p = windows_.p;
    const int64_t in = p.in_count(), out = p.out_count();
    vector_for(
        p.planes, plane_grain(in), [ =, this ](int64_t begin, int64_t end) __attribute__((always_inline)) {
          for (int64_t plane = begin; plane < end; plane++) {
            float* to = y + plane * out;
            for (const Part& depths : windows_.parts[0]) {
              for (const Part& rows : windows_.parts[1]) {
                run_row(x + plane * in, depths, rows, to);
                to += windows_.p.out[2];
              }
            }
          }
        });
  }
  PG_INLINE void run_row(const float* x, const Part& depths, const Part& rows, float* y) const {
    const auto& columns = windows_.parts[2];
    const int64_t stride = windows_.p.stride[2];
    auto single = [&](int64_t o) __attribute__((always_inline)) {
      const Part& column = columns[static_cast<size_t>(o)];
      y[o] = mean_of<float>(x, depths, rows, column, windows_.divides(depths, rows, column));
    };
    for (int64_t o = 0; o < inner_; o++) single(o);
    if (stride == 1)
      run_inner<1>(x, depths, rows, y);
    else if (stride == 2)
      run_inner<2>(x, depths, rows, y);
    else
      run_inner<0>(x, depths, rows, y);
    for (int64_t o = inner_end_; o < windows_.p.out[2]; o++) single(o);
  }
  // Outputs from inner_ to inner_end_, each of which adds up its window in the order of mean_of(). The last vector may
  // overlap the one before it.
  template <int64_t kStride>
  PG_INLINE void run_inner(const float* x, const Part& depths, const Part& rows, float* y) const {
    const Pool& p = windows_.p;
    const int64_t taps = p.kernel[2], stride = p.stride[2], last = inner_end_ - kLanes;
    const Part& first = windows_.parts[2][static_cast<size_t>(inner_)];
    const auto divisor = static_cast<float>(windows_.divides(depths, rows, first));
    for (int64_t next = inner_; next < inner_end_; next += kLanes) {
      const int64_t o = std::min(next, last), column = first.begin + (o - inner_) * stride;
      Floats sum{};
      for (int64_t d = depths.begin; d < depths.end; d++) {
        for (int64_t i = rows.begin; i < rows.end; i++) {
          const float* line = x + (d * p.in[1] + i) * p.in[2] + column;
          int64_t j = 0;
          if (kStride == 2 && taps > 1) {
            Floats even, odd;
            load_pairs(line, even, odd);
            sum += even, sum += odd;
            j = 2;
          }
          for (; j < taps; j++) {
            Floats value;
            load_lanes<kStride>(line + j, value, stride);
            sum += value;
          }
        }
      }
      sum /= divisor;
      std::memcpy(y + o, &sum, sizeof sum);
    }
  }

  uint32_t dtype_;
  Windows windows_;
  DenseInput x_;
  int64_t inner_ = 0, inner_end_ = 0;  // outputs of a row whose windows are alike and may be taken by vectors
};

class AvgPoolGrad final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_float(call, dtype_of(call.in(0)));
    if (!is_dense(call.out(0))) fail_support("the result must be dense");
    read_pool(call, call.out(0), call.in(0));
  }
  AvgPoolGrad(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))), windows_(call, call.out(0), call.in(0)), dy_(call.in(0)) {
    Scratch scratch;
    dy_.get(nullptr, scratch);
    if (!windows_.tile()) with_float(dtype_, [&](auto type) { scratch.take(sums(type).bytes()); });
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    Scratch scratch(host_pointer(launch.workspace));
    const Pool& p = windows_.p;
    if (p.planes * p.in_count() == 0) return;
    windows_.at_launch();
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      auto* dy = static_cast<const T*>(dy_.get(input(launch, 0), scratch));
      if (windows_.tile()) return run_tiles(dy, output<T>(launch, 0));
      sums(type).run(output<T>(launch, 0), scratch.take(sums(type).bytes()), [&](int64_t plane, Accumulator<T>* dx) {
        const T* source = dy + plane * p.out_count();
        windows_.each([&](const Part& depths, const Part& rows, const Part& columns, double divisor) {
          Accumulator<T> share = load<T>(*source++) / static_cast<Accumulator<T>>(divisor);
          for (int64_t d = depths.begin; d < depths.end; d++) {
            for (int64_t i = rows.begin; i < rows.end; i++) {
              Accumulator<T>* line = dx + (d * p.in[1] + i) * p.in[2];
              for (int64_t j = columns.begin; j < columns.end; j++) line[j] += share;
            }
          }
        });
      });
    });
  }

 private:
  // Each element of dx has one window: rows are written, none is added to.
  template <class T>
  void run_tiles(const T* dy, T* dx) const {
    const Pool& p = windows_.p;
    vector_for(
        p.planes, plane_grain(p.in_count()), [ =, this ](int64_t begin, int64_t end) __attribute__((always_inline)) {
          for (int64_t plane = begin; plane < end; plane++) {
            windows_.p.kernel[2] == 2 ? fill_tiles<2>(dy, dx, plane) : fill_tiles<0>(dy, dx, plane);
          }
        });
  }
  template <int64_t kTaps, class T>
  PG_INLINE void fill_tiles(const T* dy, T* dx, int64_t plane) const {
    const Pool& p = windows_.p;
    const int64_t taps = kTaps == 0 ? p.kernel[2] : kTaps, wide = p.in[2], out = p.out[2];
    const auto divisor =
        static_cast<Accumulator<T>>(windows_.divides(windows_.parts[0][0], windows_.parts[1][0], windows_.parts[2][0]));
    const T* from = dy + plane * p.out_count();
    for (int64_t d = 0; d < p.out[0]; d++) {
      for (int64_t h = 0; h < p.out[1]; h++, from += out) {
        T* block = dx + plane * p.in_count() + (d * p.kernel[0] * p.in[1] + h * p.kernel[1]) * wide;
        for (int64_t o = 0; o < out; o++) {  // + 0: a sum that begins with 0 is never -0
          const T share = store<T>(load<T>(from[o]) / divisor + Accumulator<T>{});
          for (int64_t j = 0; j < taps; j++) block[o * taps + j] = share;
        }
        for (int64_t i = 0; i < p.kernel[0] * p.kernel[1]; i++) {
          T* row = block + (i / p.kernel[1] * p.in[1] + i % p.kernel[1]) * wide;
          if (row != block) std::memcpy(row, block, static_cast<size_t>(wide) * sizeof(T));
        }
      }
    }
  }
  template <class T>
  PlaneSums<T> sums(Type<T>) const {
    return PlaneSums<T>(windows_.p.planes, windows_.p.in_count());
  }
  uint32_t dtype_;
  Windows windows_;
  DenseInput dy_;
};

constexpr int64_t kChannels = 64;  // at a time

// What lies channels-last: a pixel's channels side by side, added up in the order of mean_of().
class AvgPoolLast final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_float(call, dtype_of(call.in(0)));
    read_pool(call, call.in(0), call.out(0));
  }
  AvgPoolLast(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))),
        channels_(call.in(0).shape[1]),
        windows_(call, call.in(0), call.out(0)),
        x_(dense_input(call.in(0), true)) {
    Scratch scratch;
    x_.get(nullptr, scratch);
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    Scratch scratch(host_pointer(launch.workspace));
    if (windows_.p.planes * windows_.p.out_count() == 0) return;
    windows_.at_launch();
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      run(static_cast<const T*>(x_.get(input(launch, 0), scratch)), output<T>(launch, 0));
    });
  }

 private:
  template <class T>
  void run(const T* x, T* y) const {
    const Pool& p = windows_.p;
    const int64_t c = channels_, in = p.in_count(), out = p.out_count(), images = p.planes / c;
    vector_for(
        images * out, std::max<int64_t>(1, 4096 / c),
        [ =, this ](int64_t begin, int64_t end) __attribute__((always_inline)) {
          for (int64_t at = begin; at < end; at++) {
            const int64_t o = at % out, row = o / windows_.p.out[2];
            const Part& depths = windows_.parts[0][static_cast<size_t>(row / windows_.p.out[1])];
            const Part& rows = windows_.parts[1][static_cast<size_t>(row % windows_.p.out[1])];
            const Part& columns = windows_.parts[2][static_cast<size_t>(o % windows_.p.out[2])];
            for (int64_t first = 0; first < c; first += kChannels)
              pixel(x + at / out * in * c + first, y + at * c + first, std::min(kChannels, c - first), depths, rows,
                    columns);
          }
        });
  }
  template <class T>
  PG_INLINE void pixel(const T* x, T* y, int64_t count, const Part& depths, const Part& rows,
                       const Part& columns) const {
    const Pool& p = windows_.p;
    const auto divisor = static_cast<Accumulator<T>>(windows_.divides(depths, rows, columns));
    Accumulator<T> sum[kChannels] = {};
    for (int64_t d = depths.begin; d < depths.end; d++) {
      for (int64_t i = rows.begin; i < rows.end; i++) {
        for (int64_t j = columns.begin; j < columns.end; j++) {
          const T* from = x + ((d * p.in[1] + i) * p.in[2] + j) * channels_;
          for (int64_t k = 0; k < count; k++) sum[k] += load<T>(from[k]);
        }
      }
    }
    for (int64_t k = 0; k < count; k++) y[k] = store<T>(sum[k] / divisor);
  }

  uint32_t dtype_;
  int64_t channels_;
  Windows windows_;
  DenseInput x_;
};

class AvgPoolGradLast final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_float(call, dtype_of(call.in(0)));
    read_pool(call, call.out(0), call.in(0));
  }
  AvgPoolGradLast(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))),
        channels_(call.out(0).shape[1]),
        windows_(call, call.out(0), call.in(0)),
        dy_(dense_input(call.in(0), true)) {
    Scratch scratch;
    dy_.get(nullptr, scratch);
    with_float(dtype_, [&](auto type) { scratch.take(sums(type).bytes()); });
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    Scratch scratch(host_pointer(launch.workspace));
    const Pool& p = windows_.p;
    if (p.planes * p.in_count() == 0) return;
    windows_.at_launch();
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      const int64_t c = channels_;
      auto* dy = static_cast<const T*>(dy_.get(input(launch, 0), scratch));
      sums(type).run(output<T>(launch, 0), scratch.take(sums(type).bytes()), [&](int64_t image, Accumulator<T>* dx) {
        const T* source = dy + image * p.out_count() * c;
        windows_.each([&](const Part& depths, const Part& rows, const Part& columns, double divisor) {
          const auto by = static_cast<Accumulator<T>>(divisor);
          for (int64_t d = depths.begin; d < depths.end; d++) {
            for (int64_t i = rows.begin; i < rows.end; i++) {
              for (int64_t j = columns.begin; j < columns.end; j++) {
                Accumulator<T>* to = dx + ((d * p.in[1] + i) * p.in[2] + j) * c;
                for (int64_t k = 0; k < c; k++) to[k] += load<T>(source[k]) / by;
              }
            }
          }
          source += c;
        });
      });
    });
  }

 private:
  template <class T>
  PlaneSums<T> sums(Type<T>) const {
    return PlaneSums<T>(windows_.p.planes / channels_, windows_.p.in_count() * channels_);
  }
  uint32_t dtype_;
  int64_t channels_;
  Windows windows_;
  DenseInput dy_;
};

[[maybe_unused]] const int registered[] = {
    add_either<AvgPool, AvgPoolLast>("avg_pool1d"),
    add_either<AvgPool, AvgPoolLast>("avg_pool2d"),
    add_either<AvgPool, AvgPoolLast>("avg_pool3d"),
    add_either<AvgPoolGrad, AvgPoolGradLast>("avg_pool1d_grad"),
    add_either<AvgPoolGrad, AvgPoolGradLast>("avg_pool2d_grad"),
    add_either<AvgPoolGrad, AvgPoolGradLast>("avg_pool3d_grad"),
};

}  // namespace
}  // namespace pg::cpu::avg_pool
