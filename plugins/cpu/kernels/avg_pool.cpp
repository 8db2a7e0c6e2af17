// SPDX-License-Identifier: Apache-2.0
// avg_pool1d, 2d, 3d (x) -> y and their gradients _grad(dy, x) -> dx, where of x only the shape counts. The divisor is
// the window's size within the padded plane, or, without count_include_pad, within the plane, or a number of one's own.
#include "kernels/planes.hpp"

namespace pg::cpu {
namespace {

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
  static double counted(const Part& part) { return static_cast<double>(part.counted); }
  // body(depths, rows, columns, divisor) for every output in row-major order.
  template <class Body>
  void each(Body&& body) const {
    for (const Part& d : parts[0]) {
      for (const Part& h : parts[1]) {
        for (const Part& w : parts[2])
          body(d, h, w, divisor != 0 ? static_cast<double>(divisor) : counted(d) * counted(h) * counted(w));
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
  }
  void launch(const pg_launch& launch) override {
    Scratch scratch(host_pointer(launch.workspace));
    const Pool& p = windows_.p;
    if (p.planes * p.out_count() == 0) return;
    windows_.at_launch();
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
    const Pool& p = windows_.p;
    windows_.each([&](const Part& depths, const Part& rows, const Part& columns, double divisor) {
      Accumulator<T> sum = 0;
      for (int64_t d = depths.begin; d < depths.end; d++) {
        for (int64_t i = rows.begin; i < rows.end; i++) {
          const T* line = x + (d * p.in[1] + i) * p.in[2];
          for (int64_t j = columns.begin; j < columns.end; j++) sum += load<T>(line[j]);
        }
      }
      *y++ = store<T>(sum / static_cast<Accumulator<T>>(divisor));
    });
  }
  uint32_t dtype_;
  Windows windows_;
  DenseInput x_;
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
      auto* dy = static_cast<const T*>(dy_.get(input(launch, 0), scratch));
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
  template <class T>
  PlaneSums<T> sums(Type<T>) const {
    return PlaneSums<T>(windows_.p.planes, windows_.p.in_count());
  }
  uint32_t dtype_;
  Windows windows_;
  DenseInput dy_;
};

PG_KERNEL("avg_pool1d", AvgPool);
PG_KERNEL("avg_pool2d", AvgPool);
PG_KERNEL("avg_pool3d", AvgPool);
PG_KERNEL("avg_pool1d_grad", AvgPoolGrad);
PG_KERNEL("avg_pool2d_grad", AvgPoolGrad);
PG_KERNEL("avg_pool3d_grad", AvgPoolGrad);

}  // namespace
}  // namespace pg::cpu
