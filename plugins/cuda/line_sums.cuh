// SPDX-License-Identifier: Apache-2.0
// What softmax, its gradient and layer_norm know of a line before they write it. Their own kernels compute it, and
// generated ones (fused/), which write lines in ways of their own.
//
// A group of `lanes` threads has a line. Part is one thread's share of it, W elements at a time:
//   each(body(i, own))      i: the first one's number; own: where the thread may keep them
//   fetch(i, values)        reads them;  keep(own, values)  keeps them;  again(i, own, values)  as they were kept
//   keep_powers(own, powers)                                             instead, for softmax
#pragma once

#include "reducers.cuh"
#include "stretch.cuh"

namespace cuda {

// ---- softmax ----

// A line's denominator.
template <class C>
struct Total {
  C top, sum, log_sum;

  __device__ explicit Total(const Powers<C>& p) : top(p.top), sum(static_cast<C>(p.sum)) {
    if (std::fabs(top) == std::numeric_limits<C>::infinity()) sum = std::numeric_limits<C>::quiet_NaN();
    log_sum = pg::math::log_of(sum);
  }
  __device__ C log_of(C x) const { return (x - top) - log_sum; }
  __device__ C of(C x) const { return pg::math::exp_of(x - top) / sum; }
};

template <int W, class C, class Part>
__device__ __forceinline__ C largest_of_line(const Part& part) {
  C top = -std::numeric_limits<C>::infinity();
  part.each([&](int64_t i, C* own) {
    C values[W];
    part.fetch(i, values);
    part.keep(own, values);
    for (int w = 0; w < W; w++) top = pg::math::Maximum()(top, values[w]);
  });
  return top;
}
// The sum of e^(x - top).
template <int W, class C, class Part>
__device__ __forceinline__ double powers_of_line(const Part& part, C top) {
  double sum = 0;
  part.each([&](int64_t i, C* own) {
    C powers[W];
    part.again(i, own, powers);
    for (int w = 0; w < W; w++) powers[w] = pg::math::exp_of(powers[w] - top);
    part.keep_powers(own, powers);
    sum += static_cast<double>(tree_sum(powers));
  });
  return sum;
}

// ---- the gradients of softmax and log_softmax ----
// dx = y (dy - total) with the sum of y dy as the total; of log_softmax dx = dy - e^y total with that of dy.

// One thread's part of the total, of a line that is cut as y is.
template <class S>
__device__ __forceinline__ double flow_of_line(const Stretch<S>& part, const char* y, const char* dy, bool log) {
  using C = typename Access<S>::C;
  constexpr int W = Stretch<S>::kWidth;
  const bool with_dy = same_cut(y, dy);
  double sum = 0;
  part.template each<2>(false, [&](auto count, int64_t place) {
    constexpr int M = decltype(count)::value;
    uint4 left[M], right[M];
    C flows[M * W];
    if (!log) read_packets<S>(y, place, part.apart(), true, left);
    read_packets<S>(dy, place, part.apart(), with_dy, right);
#pragma unroll
    for (int m = 0; m < M; m++) {
      unpack_packet<S>(right[m], flows + m * W);
      if (log) continue;
      C values[W];
      unpack_packet<S>(left[m], values);
#pragma unroll
      for (int w = 0; w < W; w++) flows[m * W + w] *= values[w];
    }
    sum += static_cast<double>(tree_sum(flows));
  });
  part.each_single([&](int64_t i) {
    C flow = element<S>(dy + i * int64_t{sizeof(S)});
    sum += static_cast<double>(log ? flow : flow * element<S>(y + i * int64_t{sizeof(S)}));
  });
  return sum;
}
template <class S, class C>
__device__ __forceinline__ C slope_of(C y, C dy, C total, bool log) {
  return log ? dy - power_of<S>(y) * total : y * (dy - total);
}

// ---- layer_norm ----

template <class C>
struct LineScale {
  C mean, invstd;
};

// All threads of the block call it; `mine`: there is a line. n: its elements.
template <int W, class C, class Part>
__device__ __forceinline__ LineScale<C> scale_of_line(const Part& part, bool mine, int lanes, double n, double eps) {
  double sum = 0, squares = 0;
  if (mine) {
    part.each([&](int64_t i, C* own) {
      C x[W];
      part.fetch(i, x);
      part.keep(own, x);
      sum += static_cast<double>(tree_sum(x));
    });
  }
  const C mean = static_cast<C>(merge_group(sum, lanes, AddUp()) / n);
  if (mine) {
    part.each([&](int64_t i, C* own) {
      C x[W];
      part.again(i, own, x);
      for (int w = 0; w < W; w++) x[w] = (x[w] - mean) * (x[w] - mean);
      squares += static_cast<double>(tree_sum(x));
    });
  }
  return {mean, static_cast<C>(1 / sqrt(merge_group(squares, lanes, AddUp()) / n + eps))};
}

// A line of packets that the lanes of a warp have in registers, P packets each: values are what is above the mean.
// share: 1 / size.
constexpr int kFullLanes = 32;
template <class S, int P, int W>
__device__ __forceinline__ LineScale<float> keep_line(const char* x, int lane, int32_t size, double share, double eps,
                                                      float (&values)[P][W]) {
  uint4 raw[P];
  float sums[P];
#pragma unroll
  for (int p = 0; p < P; p++) {
    int32_t i = (p * kFullLanes + lane) * W;
    raw[p] = i < size ? read_packet(x + i * int64_t{sizeof(S)}) : uint4{};
  }
  double sum = 0;
#pragma unroll
  for (int p = 0; p < P; p++) {
    unpack_packet<S>(raw[p], values[p]);
    sum += static_cast<double>(tree_sum(values[p]));
  }
#pragma unroll
  for (int step = kFullLanes / 2; step > 0; step /= 2) sum += shuffle_xor(sum, step);
  const auto mean = static_cast<float>(sum * share);
#pragma unroll
  for (int p = 0; p < P; p++) {
    bool real = (p * kFullLanes + lane) * W < size;
    float squares[W];
#pragma unroll
    for (int w = 0; w < W; w++) {
      values[p][w] -= mean;
      squares[w] = values[p][w] * values[p][w];
    }
    sums[p] = real ? tree_sum(squares) : 0.0f;
  }
  float squares = tree_sum(sums);
#pragma unroll
  for (int step = kFullLanes / 2; step > 0; step /= 2) squares += shuffle_xor(squares, step);
  return {mean, 1.0f / sqrtf(static_cast<float>(static_cast<double>(squares) * share + eps))};
}

}  // namespace cuda
