// SPDX-License-Identifier: Apache-2.0
// Convolutions as their definition reads: a thread per element of y or of dx, a block per element of dweight. For what
// cuDNN refuses, for sums over nothing, and for every stride. Images are volumes of one plane.
#include <algorithm>
#include <cmath>

#include "cudnn/conv.hpp"

namespace cuda::dnn {
namespace {

// Axes 0, 1 and 2 count planes, rows and columns.
struct Arguments {
  const void *x, *weight, *y, *bias;
  void* result;
  int64_t xs[5], ws[5], ys[5];  // strides
  int64_t n, c, o, in[3], out[3], kernel[3];
  int64_t c_group, o_group;
  int64_t stride[3], padding[3], dilation[3];
  int64_t bias_stride, count;  // count: elements of the result
};

__device__ __forceinline__ float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return fma(a, b, c); }

// Position i of a row-major [a, b, planes, rows, columns].
struct Place {
  int64_t a, b, at[3];
};
__device__ __forceinline__ Place place_of(int64_t i, int64_t b, const int64_t (&size)[3]) {
  Place place;
#pragma unroll
  for (int d = 2; d >= 0; d--) {
    int64_t rest = i / size[d];
    place.at[d] = i - rest * size[d];
    i = rest;
  }
  place.a = i / b, place.b = i - place.a * b;
  return place;
}

template <class S>
__global__ void __launch_bounds__(kThreads, 1) forward(Arguments g) {
  using T = Compute<S>;
  auto* x = static_cast<const S*>(g.x);
  auto* weight = static_cast<const S*>(g.weight);
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < g.count; i += gridDim.x * int64_t{kThreads}) {
    Place at = place_of(i, g.o, g.out);
    int64_t front = at.at[0] * g.stride[0] - g.padding[0], top = at.at[1] * g.stride[1] - g.padding[1],
            left = at.at[2] * g.stride[2] - g.padding[2];
    const S* volume = x + at.a * g.xs[0] + at.b / g.o_group * g.c_group * g.xs[1];
    const S* filter = weight + at.b * g.ws[0];
    T sum = 0;
    for (int64_t c = 0; c < g.c_group; c++) {
      for (int64_t kz = 0; kz < g.kernel[0]; kz++) {
        int64_t d = front + kz * g.dilation[0];
        if (d < 0 || d >= g.in[0]) continue;
        const S* image = volume + c * g.xs[1] + d * g.xs[2];
        const S* taps = filter + c * g.ws[1] + kz * g.ws[2];
        for (int64_t ky = 0; ky < g.kernel[1]; ky++) {
          int64_t h = top + ky * g.dilation[1];
          if (h < 0 || h >= g.in[1]) continue;
          for (int64_t kx = 0; kx < g.kernel[2]; kx++) {
            int64_t w = left + kx * g.dilation[2];
            if (w < 0 || w >= g.in[2]) continue;
            T value = unpack(image[h * g.xs[3] + w * g.xs[4]]);
            sum = multiply_add(unpack(taps[ky * g.ws[3] + kx * g.ws[4]]), value, sum);
          }
        }
      }
    }
    if (g.bias != nullptr) sum += unpack(static_cast<const S*>(g.bias)[at.b * g.bias_stride]);
    static_cast<S*>(g.result)[i] = pack<S>(sum);
  }
}

// The output along axis d whose tap k lies at `place` of x, or -1.
__device__ __forceinline__ int64_t output_at(const Arguments& g, int d, int64_t place, int64_t k) {
  int64_t from = place + g.padding[d] - k * g.dilation[d], o = from / g.stride[d];
  return from < 0 || o >= g.out[d] || o * g.stride[d] != from ? -1 : o;
}

template <class S>
__global__ void __launch_bounds__(kThreads, 1) input_gradient(Arguments g) {
  using T = Compute<S>;
  auto* dy = static_cast<const S*>(g.y);
  auto* weight = static_cast<const S*>(g.weight);
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < g.count; i += gridDim.x * int64_t{kThreads}) {
    Place at = place_of(i, g.c, g.in);
    int64_t group = at.b / g.c_group, c = at.b - group * g.c_group;
    T sum = 0;
    for (int64_t o = group * g.o_group; o < (group + 1) * g.o_group; o++) {
      const S* flow = dy + at.a * g.ys[0] + o * g.ys[1];
      const S* filter = weight + o * g.ws[0] + c * g.ws[1];
      for (int64_t kz = 0; kz < g.kernel[0]; kz++) {
        int64_t oz = output_at(g, 0, at.at[0], kz);
        if (oz < 0) continue;
        for (int64_t ky = 0; ky < g.kernel[1]; ky++) {
          int64_t oy = output_at(g, 1, at.at[1], ky);
          if (oy < 0) continue;
          for (int64_t kx = 0; kx < g.kernel[2]; kx++) {
            int64_t ox = output_at(g, 2, at.at[2], kx);
            if (ox < 0) continue;
            T value = unpack(flow[oz * g.ys[2] + oy * g.ys[3] + ox * g.ys[4]]);
            sum = multiply_add(unpack(filter[kz * g.ws[2] + ky * g.ws[3] + kx * g.ws[4]]), value, sum);
          }
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
    Place at = place_of(i, g.c_group, g.kernel);
    const S* flow = dy + at.a * g.ys[1];
    const S* volume = x + (at.a / g.o_group * g.c_group + at.b) * g.xs[1];
    int64_t front = at.at[0] * g.dilation[0] - g.padding[0], top = at.at[1] * g.dilation[1] - g.padding[1],
            left = at.at[2] * g.dilation[2] - g.padding[2];
    T sum = 0;
    for (int64_t p = threadIdx.x; p < g.n * g.out[0] * g.out[1] * g.out[2]; p += blockDim.x) {
      Place from = place_of(p, g.n, g.out);
      int64_t oz = from.at[0], oy = from.at[1], ox = from.at[2];
      int64_t d = oz * g.stride[0] + front, h = oy * g.stride[1] + top, w = ox * g.stride[2] + left;
      if (d < 0 || d >= g.in[0] || h < 0 || h >= g.in[1] || w < 0 || w >= g.in[2]) continue;
      T value = unpack(volume[from.b * g.xs[0] + d * g.xs[2] + h * g.xs[3] + w * g.xs[4]]);
      sum = multiply_add(unpack(flow[from.b * g.ys[0] + oz * g.ys[2] + oy * g.ys[3] + ox * g.ys[4]]), value, sum);
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
    set_strides(s.x_stride, g.xs), set_strides(s.weight_stride, g.ws), set_strides(s.y_stride, g.ys);
    g.n = s.x[0], g.c = s.x[1], g.o = s.weight[0];
    g.c_group = s.weight[1], g.o_group = s.weight[0] / s.groups;
    auto before = static_cast<int>(3 - s.axes());  // axes that are not there
    for (int i = 0; i < 3; i++) {
      auto own = static_cast<size_t>(i - before + 2);
      bool is = i >= before;
      g.in[i] = is ? s.x[own] : 1, g.out[i] = is ? s.y[own] : 1, g.kernel[i] = is ? s.weight[own] : 1;
      g.stride[i] = is ? s.stride[i - before] : 1, g.padding[i] = is ? s.padding[i - before] : 0;
      g.dilation[i] = is ? s.dilation[i - before] : 1;
    }
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
  static void set_strides(const Sizes& stride, int64_t (&to)[5]) {
    std::copy_n(stride.begin(), 2, to);
    to[2] = 0;  // of the one plane of an image
    std::copy(stride.begin() + 2, stride.end(), to + (7 - stride.size()));
  }
  // As many threads as there are products to add, in powers of two.
  Grid weight_grid() const {
    const Arguments& g = arguments_;
    Grid grid;
    grid.x = static_cast<uint32_t>(std::min(g.count, kMaxBlocks));
    grid.threads = 32;
    const int64_t terms = g.n * g.out[0] * g.out[1] * g.out[2];
    while (grid.threads < kThreads && grid.threads < terms) grid.threads *= 2;
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
