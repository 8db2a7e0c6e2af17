// SPDX-License-Identifier: Apache-2.0
// resample and its gradient: one axis interpolated. A thread makes one element, of y from what it is made of, of dx
// from the outputs that it is part of, in order.
#include "kernel.hpp"
#include "perigee/kernels/resample.hpp"
#include "walk.hpp"

namespace cuda {
namespace {

struct Lines {
  pg::ResampledAxis axis;
  double step;
  Extent inner, along;  // along: of what is made
  int64_t total;        // elements that are made
  bool narrow;
  // Where element p is: b before the axis, at along it, i behind it.
  PG_HD void split(int64_t p, int64_t& b, int64_t& at, int64_t& i) const {
    i = p;
    at = inner.split(i, narrow);
    b = along.split(at, narrow);
  }
};

template <class S>
__global__ void __launch_bounds__(kThreads) interpolate(const __grid_constant__ Lines s, const S* x, S* y) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < s.total; p += stride) {
    int64_t b, o, i;
    s.split(p, b, o, i);
    const S* from = x + b * s.axis.in * s.inner.size + i;
    Compute<S> sum = 0;
    s.axis.visit(o, s.step, [&](int64_t at, double weight) {
      sum += static_cast<Compute<S>>(weight) * unpack(from[at * s.inner.size]);
    });
    y[p] = pack<S>(sum);
  }
}

template <class S>
__global__ void __launch_bounds__(kThreads) spread(const __grid_constant__ Lines s, const S* dy, S* dx) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < s.total; p += stride) {
    int64_t b, own, i;
    s.split(p, b, own, i);
    // The first output that does not end before this element: outputs only move forward.
    int64_t o = 0, high = s.axis.out, first, last;
    while (o < high) {
      int64_t middle = (o + high) / 2;
      s.axis.span(middle, s.step, first, last);
      if (last < own)
        o = middle + 1;
      else
        high = middle;
    }
    const S* from = dy + b * s.axis.out * s.inner.size + i;
    Compute<S> sum = 0;
    for (; o < s.axis.out; o++) {
      s.axis.span(o, s.step, first, last);
      if (first > own) break;
      const Compute<S> flow = unpack(from[o * s.inner.size]);
      if (s.axis.mode == pg::Resampling::kArea) {
        sum += flow / static_cast<Compute<S>>(last - first + 1);
        continue;
      }
      s.axis.visit(o, s.step, [&](int64_t at, double weight) {
        if (at == own) sum += static_cast<Compute<S>>(weight) * flow;
      });
    }
    dx[p] = pack<S>(sum);
  }
}

class ResampleKernel : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kFloats);
    if (pg::dtype_of(call.in(0)) != pg::dtype_of(call.out(0))) pg::fail_support("the result has another dtype");
    if (!pg::is_contiguous(call.in(0)) || !pg::is_contiguous(call.out(0)))
      pg::fail_support("the operands must be contiguous");
  }

 protected:
  // x: in the shape that is not resampled; made: what the kernel writes.
  ResampleKernel(const pg::KernelCall& call, const pg_tensor& x, const pg_tensor& made)
      : dtype_(pg::dtype_of(call.out(0))) {
    int64_t axis = call.axis("axis", x.rank), inner = 1;
    for (uint32_t i = static_cast<uint32_t>(axis) + 1; i < x.rank; i++) inner *= x.shape[i];
    lines_.axis = {static_cast<pg::Resampling>(call.attr<int32_t>("mode")), x.shape[axis], call.attr<int64_t>("size"),
                   call.attr<bool>("align_corners"), call.attr<double>("scale")};
    lines_.step = lines_.axis.step();
    lines_.inner = Extent(inner);
    lines_.along = Extent(made.shape[axis]);
    lines_.total = pg::element_count(made);
    lines_.narrow = lines_.total < kNarrow;
  }
  uint32_t dtype_;
  Lines lines_{};
};

class Resample final : public ResampleKernel {
 public:
  Resample(const pg::KernelCall& call, pg::Plan&) : ResampleKernel(call, call.in(0), call.out(0)) {}
  void run(const Launch& launch) override {
    if (lines_.total == 0) return;
    with_float(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      launch(grid_for(lines_.total), interpolate<S>, lines_, launch.in<S>(0), launch.out<S>(0));
    });
  }
};
PG_KERNEL("resample", Resample);

class ResampleGrad final : public ResampleKernel {
 public:
  ResampleGrad(const pg::KernelCall& call, pg::Plan&) : ResampleKernel(call, call.out(0), call.out(0)) {}
  void run(const Launch& launch) override {
    if (lines_.total == 0) return;
    with_float(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      launch(grid_for(lines_.total), spread<S>, lines_, launch.in<S>(0), launch.out<S>(0));
    });
  }
};
PG_KERNEL("resample_grad", ResampleGrad);

}  // namespace
}  // namespace cuda
