// SPDX-License-Identifier: Apache-2.0
// Convolutions as their definition reads: a thread per element of y or of dx, a block per element of dweight. For what
// cuDNN refuses, for sums over nothing, and for every stride.
#include <algorithm>
#include <cmath>

#include "cudnn/conv.hpp"

namespace cuda::dnn {
namespace {

struct Arguments {
  const void *x, *weight, *y, *bias;
  void* result;
  int64_t xs[4], ws[4], ys[4];  // strides
  int64_t n, c, h, w, o, oh, ow, kh, kw;
  int64_t c_group, o_group;
  int64_t stride[2], padding[2], dilation[2];
  int64_t bias_stride, count;  // count: elements of the result
};

__device__ __forceinline__ float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return fma(a, b, c); }

// Position i of a row-major [a, b, c, d].
struct Place {
  int64_t a, b, c, d;
};
__device__ __forceinline__ Place place_of(int64_t i, int64_t b, int64_t c, int64_t d) {
  int64_t row = i / d, plane = row / c, block = plane / b;
  return {block, plane - block * b, row - plane * c, i - row * d};
}

template <class S>
__global__ void __launch_bounds__(kThreads, 1) forward(Arguments g) {
  using T = Compute<S>;
  auto* x = static_cast<const S*>(g.x);
  auto* weight = static_cast<const S*>(g.weight);
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < g.count; i += gridDim.x * int64_t{kThreads}) {
    Place at = place_of(i, g.o, g.oh, g.ow);
    int64_t top = at.c * g.stride[0] - g.padding[0], left = at.d * g.stride[1] - g.padding[1];
    const S* image = x + at.a * g.xs[0] + at.b / g.o_group * g.c_group * g.xs[1];
    const S* filter = weight + at.b * g.ws[0];
    T sum = 0;
    for (int64_t c = 0; c < g.c_group; c++) {
      for (int64_t ky = 0; ky < g.kh; ky++) {
        int64_t h = top + ky * g.dilation[0];
        if (h < 0 || h >= g.h) continue;
        for (int64_t kx = 0; kx < g.kw; kx++) {
          int64_t w = left + kx * g.dilation[1];
          if (w < 0 || w >= g.w) continue;
          T value = unpack(image[c * g.xs[1] + h * g.xs[2] + w * g.xs[3]]);
          sum = multiply_add(unpack(filter[c * g.ws[1] + ky * g.ws[2] + kx * g.ws[3]]), value, sum);
        }
      }
    }
    if (g.bias != nullptr) sum += unpack(static_cast<const S*>(g.bias)[at.b * g.bias_stride]);
    static_cast<S*>(g.result)[i] = pack<S>(sum);
  }
}

template <class S>
__global__ void __launch_bounds__(kThreads, 1) input_gradient(Arguments g) {
  using T = Compute<S>;
  auto* dy = static_cast<const S*>(g.y);
  auto* weight = static_cast<const S*>(g.weight);
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < g.count; i += gridDim.x * int64_t{kThreads}) {
    Place at = place_of(i, g.c, g.h, g.w);
    int64_t group = at.b / g.c_group, c = at.b - group * g.c_group;
    T sum = 0;
    for (int64_t o = group * g.o_group; o < (group + 1) * g.o_group; o++) {
      const S* flow = dy + at.a * g.ys[0] + o * g.ys[1];
      const S* filter = weight + o * g.ws[0] + c * g.ws[1];
      for (int64_t ky = 0; ky < g.kh; ky++) {
        int64_t down = at.c + g.padding[0] - ky * g.dilation[0], oy = down / g.stride[0];
        if (down < 0 || oy >= g.oh || oy * g.stride[0] != down) continue;
        for (int64_t kx = 0; kx < g.kw; kx++) {
          int64_t right = at.d + g.padding[1] - kx * g.dilation[1], ox = right / g.stride[1];
          if (right < 0 || ox >= g.ow || ox * g.stride[1] != right) continue;
          T value = unpack(flow[oy * g.ys[2] + ox * g.ys[3]]);
          sum = multiply_add(unpack(filter[ky * g.ws[2] + kx * g.ws[3]]), value, sum);
        }
      }
    }
    static_cast<S*>(g.result)[i] = pack<S>(sum);
  }
}

// The threads' sums are added up in the order of a tree, the same in every run. blockDim.x is a power of two.
template <class S>
__global__ void __launch_bounds__(kThreads) weight_gradient(Arguments g) {
  using T = Compute<S>;
  __shared__ T sums[kThreads];
  auto* x = static_cast<const S*>(g.x);
  auto* dy = static_cast<const S*>(g.y);
  for (int64_t i = blockIdx.x; i < g.count; i += gridDim.x) {
    Place at = place_of(i, g.c_group, g.kh, g.kw);
    const S* flow = dy + at.a * g.ys[1];
    const S* image = x + (at.a / g.o_group * g.c_group + at.b) * g.xs[1];
    int64_t top = at.c * g.dilation[0] - g.padding[0], left = at.d * g.dilation[1] - g.padding[1];
    T sum = 0;
    for (int64_t p = threadIdx.x; p < g.n * g.oh * g.ow; p += blockDim.x) {
      int64_t row = p / g.ow, n = row / g.oh, oy = row - n * g.oh, ox = p - row * g.ow;
      int64_t h = oy * g.stride[0] + top, w = ox * g.stride[1] + left;
      if (h < 0 || h >= g.h || w < 0 || w >= g.w) continue;
      T value = unpack(image[n * g.xs[0] + h * g.xs[2] + w * g.xs[3]]);
      sum = multiply_add(unpack(flow[n * g.ys[0] + oy * g.ys[2] + ox * g.ys[3]]), value, sum);
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (uint32_t half = blockDim.x / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
      __syncthreads();
    }
    if (threadIdx.x == 0) static_cast<S*>(g.result)[i] = pack<S>(sums[0]);
    __syncthreads();
  }
}

class DirectConvolution final : public Convolution {
 public:
  explicit DirectConvolution(const ConvShape& s) : kind_(s.kind), dtype_(s.dtype) {
    Arguments& g = arguments_;
    std::copy_n(s.x_stride.begin(), 4, g.xs), std::copy_n(s.weight_stride.begin(), 4, g.ws);
    std::copy_n(s.y_stride.begin(), 4, g.ys);
    g.n = s.x[0], g.c = s.x[1], g.h = s.x[2], g.w = s.x[3];
    g.o = s.weight[0], g.kh = s.weight[2], g.kw = s.weight[3], g.oh = s.y[2], g.ow = s.y[3];
    g.c_group = s.weight[1], g.o_group = s.weight[0] / s.groups;
    std::copy_n(s.stride, 2, g.stride), std::copy_n(s.padding, 2, g.padding), std::copy_n(s.dilation, 2, g.dilation);
    g.bias_stride = s.bias_stride, g.count = count_of(s.result());
  }

  void run(cudaStream_t stream, const ConvData& data) const override {
    Arguments g = arguments_;
    if (g.count == 0) return;
    g.x = data.x, g.weight = data.weight, g.y = data.y, g.bias = data.bias, g.result = data.result;
    with_float(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      switch (kind_) {
        case ConvKind::kForward: return launch(stream, grid_for(g.count), forward<S>, g);
        case ConvKind::kInputGradient: return launch(stream, grid_for(g.count), input_gradient<S>, g);
        case ConvKind::kWeightGradient: return launch(stream, weight_grid(), weight_gradient<S>, g);
      }
    });
  }

 private:
  // As many threads as there are products to add, in powers of two.
  Grid weight_grid() const {
    const Arguments& g = arguments_;
    Grid grid;
    grid.x = static_cast<uint32_t>(std::min(g.count, kMaxBlocks));
    grid.threads = 32;
    while (grid.threads < kThreads && grid.threads < g.n * g.oh * g.ow) grid.threads *= 2;
    return grid;
  }

  ConvKind kind_;
  uint32_t dtype_;
  Arguments arguments_{};
};

}  // namespace

std::unique_ptr<Convolution> make_direct_convolution(const ConvShape& shape) {
  return std::make_unique<DirectConvolution>(shape);
}

}  // namespace cuda::dnn
