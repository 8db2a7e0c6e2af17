// SPDX-License-Identifier: Apache-2.0
// avg_pool2d(x) -> y and avg_pool2d_grad(dy, x) -> dx, where of x only the shape counts, and the same of volumes. The
// divisor is the window's size within the padded plane, or, without count_include_pad, within the plane, or a number of
// one's own. Additions are in the cpu's order. cuDNN serves what it has a mode for (pool_cudnn.hpp).
#include <optional>

#include "kernels/pool_cudnn.hpp"

namespace cuda {
namespace {

// The extent of a window along one axis that counts in the divisor.
template <class I>
__device__ __forceinline__ I counted(const Window<I>& w, int d, I o, bool padded) {
  I from = w.first(d, o), to = min(from + w.kernel[d], w.size[d] + w.padding[d]);
  return padded ? to - from : max(I(0), min(to, w.size[d]) - max(from, I(0)));
}
template <class S, bool kDeep, class I>
__device__ __forceinline__ Compute<S> divisor(const Window<I>& w, I oz, I oy, I ox, bool padded, int64_t instead) {
  if (instead != 0) return static_cast<Compute<S>>(instead);
  int64_t count = static_cast<int64_t>(counted(w, 1, oy, padded)) * counted(w, 2, ox, padded);
  if constexpr (kDeep) count *= counted(w, 0, oz, padded);
  return static_cast<Compute<S>>(count);
}

template <class S, bool kDeep, class I>
__global__ void __launch_bounds__(kThreads, 4)
    average(const __grid_constant__ Window<I> w, const __grid_constant__ PlaneSplit split, int64_t total,
            const __grid_constant__ PlaneOperand operand, bool padded, int64_t instead, const S* x, S* y) {
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < total; p += step) {
    int64_t at[3], plane = split.split<kDeep>(p, at);
    I oz = static_cast<I>(at[0]), oy = static_cast<I>(at[1]), ox = static_cast<I>(at[2]);
    I front = kDeep ? w.first(0, oz) : 0, top = w.first(1, oy), left = w.first(2, ox);
    I back = kDeep ? min(front + w.kernel[0], w.size[0]) : 1;
    I bottom = min(top + w.kernel[1], w.size[1]), right = min(left + w.kernel[2], w.size[2]);
    const S* from = x + operand.planes.offset(plane);
    Compute<S> sum = 0;
    for (I k = kDeep ? max(front, I(0)) : 0; k < back; k++) {
      for (I i = max(top, I(0)); i < bottom; i++) {
        for (I j = max(left, I(0)); j < right; j++) sum += unpack(from[operand.offset(kDeep ? k : 0, i, j)]);
      }
    }
    y[p] = pack<S>(sum / divisor<S, kDeep>(w, oz, oy, ox, padded, instead));
  }
}

// Windows whose taps, all next to each other, hold `place`: the first of them.
template <class I>
__device__ __forceinline__ I first_window(const Window<I>& w, int d, I place) {
  I after = place + w.padding[d] - w.kernel[d] + 1;
  return after <= 0 ? 0 : (after + w.stride[d] - 1) / w.stride[d];
}
template <class I>
__device__ __forceinline__ I last_window(const Window<I>& w, int d, I place) {
  return min((place + w.padding[d]) / w.stride[d], w.out[d] - 1);
}

// One owner for each element of dx.
template <class S, bool kDeep, class I>
__global__ void __launch_bounds__(kThreads, kDeep ? 2 : 4)
    spread(const __grid_constant__ Window<I> w, const __grid_constant__ PlaneSplit split, int64_t total,
           const __grid_constant__ PlaneOperand operand, bool padded, int64_t instead, const S* dy, S* dx) {
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < total; p += step) {
    int64_t at[3], plane = split.split<kDeep>(p, at);
    I z = static_cast<I>(at[0]), y = static_cast<I>(at[1]), x = static_cast<I>(at[2]);
    I back = kDeep ? last_window(w, 0, z) : 0, bottom = last_window(w, 1, y), right = last_window(w, 2, x);
    const S* from = dy + operand.planes.offset(plane);
    Compute<S> sum = 0;
    for (I k = kDeep ? first_window(w, 0, z) : 0; k <= back; k++) {
      for (I i = first_window(w, 1, y); i <= bottom; i++) {
        for (I j = first_window(w, 2, x); j <= right; j++) {
          sum += unpack(from[operand.offset(kDeep ? k : 0, i, j)]) / divisor<S, kDeep>(w, k, i, j, padded, instead);
        }
      }
    }
    dx[p] = pack<S>(sum);
  }
}

// Both directions: the operand is x or dy, and the result y or dx.
class AvgPool final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kFloats);
    if (pg::dtype_of(call.in(0)) != pg::dtype_of(call.out(0))) pg::fail_support("the result has another dtype");
    if (!pg::is_contiguous(call.out(0))) pg::fail_support("the result must be contiguous");
    shape_of(call);
  }
  AvgPool(const pg::KernelCall& call, pg::Plan& plan)
      : dtype_(pg::dtype_of(call.out(0))),
        backward_(is_gradient(call)),
        padded_(call.attr<bool>("count_include_pad")),
        instead_(call.attr<int64_t>("divisor_override")),
        shape_(shape_of(call)),
        operand_(call.in(0)) {
    split_ = PlaneSplit(shape_.planes, backward_ ? shape_.in : shape_.out);
    total_ = shape_.planes * (backward_ ? shape_.size() : shape_.pooled());
    if (instead_ != 0 || backward_) return;
    by_cudnn_.emplace(call, padded_ ? dnn::PoolKind::kAveragePadded : dnn::PoolKind::kAverage, shape_);
    plan.workspace = by_cudnn_->workspace();
  }
  void run(const Launch& launch) override {
    if (by_cudnn_ && by_cudnn_->run(launch)) return;
    if (shape_.deep())
      run_in<true>(launch);
    else
      run_in<false>(launch);
  }

 private:
  static bool is_gradient(const pg::KernelCall& call) {
    return call.is("avg_pool2d_grad") || call.is("avg_pool3d_grad");
  }
  static PoolShape shape_of(const pg::KernelCall& call) {
    bool backward = is_gradient(call);
    return PoolShape(call, backward ? call.out(0) : call.in(0), backward ? call.in(0) : call.out(0));
  }
  template <bool kDeep>
  void run_in(const Launch& launch) const {
    if (shape_.narrow())
      run_as<kDeep, int32_t>(launch);
    else
      run_as<kDeep, int64_t>(launch);
  }
  template <bool kDeep, class I>
  void run_as(const Launch& launch) const {
    with_float(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      launch(grid_for(total_), backward_ ? spread<S, kDeep, I> : average<S, kDeep, I>, shape_.window<I>(), split_,
             total_, operand_, padded_, instead_, launch.in<S>(0), launch.out<S>(0));
    });
  }

  uint32_t dtype_;
  bool backward_, padded_;
  int64_t instead_;
  PoolShape shape_;
  PlaneOperand operand_;
  PlaneSplit split_;
  int64_t total_ = 0;
  std::optional<PoolByCudnn> by_cudnn_;
};
PG_KERNEL("avg_pool2d", AvgPool);
PG_KERNEL("avg_pool2d_grad", AvgPool);
PG_KERNEL("avg_pool3d", AvgPool);
PG_KERNEL("avg_pool3d_grad", AvgPool);

}  // namespace
}  // namespace cuda
