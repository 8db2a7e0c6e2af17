// SPDX-License-Identifier: Apache-2.0
// avg_pool2d(x) -> y and avg_pool2d_grad(dy, x) -> dx, where of x only the shape counts. The divisor is the window's
// size within the padded plane, or, without count_include_pad, within the plane.
#include "kernels/planes.hpp"

namespace pg::cpu {
namespace {

// The part of a window inside the plane, and what its sum is divided by.
struct Window {
  int64_t top, bottom, left, right;
  double divisor;
};

struct Windows {
  Pool p;
  bool padded;

  Window at(int64_t oy, int64_t ox) const {
    int64_t y0 = oy * p.stride[0] - p.padding[0], x0 = ox * p.stride[1] - p.padding[1];
    int64_t y1 = std::min(y0 + p.kernel[0], p.h + p.padding[0]), x1 = std::min(x0 + p.kernel[1], p.w + p.padding[1]);
    auto whole = static_cast<double>((y1 - y0) * (x1 - x0));
    Window w{std::max<int64_t>(y0, 0), std::min(y1, p.h), std::max<int64_t>(x0, 0), std::min(x1, p.w), whole};
    if (!padded)
      w.divisor = static_cast<double>(std::max<int64_t>(0, w.bottom - w.top) * std::max<int64_t>(0, w.right - w.left));
    return w;
  }
};

class AvgPool2d final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_float(call, dtype_of(call.in(0)));
    if (!is_dense(call.out(0))) fail_support("the result must be dense");
    read_pool(call, call.in(0), call.out(0));
  }
  AvgPool2d(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))),
        windows_{read_pool(call, call.in(0), call.out(0)), call.attr<bool>("count_include_pad")},
        x_(call.in(0)) {
    Scratch scratch;
    x_.get(nullptr, scratch);
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    Scratch scratch(host_pointer(launch.workspace));
    const Pool& p = windows_.p;
    if (p.planes * p.oh * p.ow == 0) return;
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      auto* x = static_cast<const T*>(x_.get(input(launch, 0), scratch));
      auto* y = output<T>(launch, 0);
      parallel_for(p.planes, plane_grain(p.h * p.w), [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; plane++) run_plane(x + plane * p.h * p.w, y + plane * p.oh * p.ow);
      });
    });
  }

 private:
  template <class T>
  void run_plane(const T* x, T* y) const {
    const Pool& p = windows_.p;
    for (int64_t oy = 0; oy < p.oh; oy++) {
      for (int64_t ox = 0; ox < p.ow; ox++) {
        Window w = windows_.at(oy, ox);
        Accumulator<T> sum = 0;
        for (int64_t i = w.top; i < w.bottom; i++) {
          for (int64_t j = w.left; j < w.right; j++) sum += load<T>(x[i * p.w + j]);
        }
        *y++ = store<T>(sum / static_cast<Accumulator<T>>(w.divisor));
      }
    }
  }
  uint32_t dtype_;
  Windows windows_;
  DenseInput x_;
};

class AvgPool2dGrad final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_float(call, dtype_of(call.in(0)));
    if (!is_dense(call.out(0))) fail_support("the result must be dense");
    read_pool(call, call.out(0), call.in(0));
  }
  AvgPool2dGrad(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))),
        windows_{read_pool(call, call.out(0), call.in(0)), call.attr<bool>("count_include_pad")},
        dy_(call.in(0)) {
    Scratch scratch;
    dy_.get(nullptr, scratch);
    with_float(dtype_, [&](auto type) { scratch.take(sums(type).bytes()); });
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    Scratch scratch(host_pointer(launch.workspace));
    const Pool& p = windows_.p;
    if (p.planes * p.h * p.w == 0) return;
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      auto* dy = static_cast<const T*>(dy_.get(input(launch, 0), scratch));
      sums(type).run(output<T>(launch, 0), scratch.take(sums(type).bytes()), [&](int64_t plane, Accumulator<T>* dx) {
        const T* source = dy + plane * p.oh * p.ow;
        for (int64_t oy = 0; oy < p.oh; oy++) {
          for (int64_t ox = 0; ox < p.ow; ox++) {
            Window w = windows_.at(oy, ox);
            Accumulator<T> share = load<T>(*source++) / static_cast<Accumulator<T>>(w.divisor);
            for (int64_t i = w.top; i < w.bottom; i++) {
              for (int64_t j = w.left; j < w.right; j++) dx[i * p.w + j] += share;
            }
          }
        }
      });
    });
  }

 private:
  template <class T>
  PlaneSums<T> sums(Type<T>) const {
    return PlaneSums<T>(windows_.p.planes, windows_.p.h * windows_.p.w);
  }
  uint32_t dtype_;
  Windows windows_;
  DenseInput dy_;
};

PG_KERNEL("avg_pool2d", AvgPool2d);
PG_KERNEL("avg_pool2d_grad", AvgPool2dGrad);

}  // namespace
}  // namespace pg::cpu
