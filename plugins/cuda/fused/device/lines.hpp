// SPDX-License-Identifier: Apache-2.0
// What generated kernels of lines (line_source.cpp) are written with: lines that a block keeps in shared memory, and
// the plugin's own reductions (reduce.cuh) over them. Threads take of a line what they take of a tensor's: a line
// begins as far behind 16 aligned bytes as it would in a dense tensor, so that the order of additions is that of the
// operator.
#pragma once

#include "line_sums.cuh"
#include "reduce.cuh"
#include "region.hpp"

namespace cuda::fused {

// Bytes from one line of a buffer to the next.
PG_HD int64_t line_pitch(int64_t bytes) { return (bytes + 15) / 16 * 16 + 16; }

// Line t of a buffer, which is line number `line` of all.
template <class S>
__device__ __forceinline__ char* line_in(char* buffer, int64_t length, int t, int64_t line) {
  const int64_t bytes = length * static_cast<int64_t>(sizeof(S));
  return buffer + t * line_pitch(bytes) + (line * bytes & 15);
}

template <class S, class T>
__device__ __forceinline__ void store_one(char* base, int64_t i, T x) {
  reinterpret_cast<S*>(base)[i] = convert<S>(x);
}

// Reduces line t, which lies at where(t), to result t of r, for `lines` lines. Called by all threads of the block.
template <class R, class Where>
__device__ void reduce_lines(const R& r, uint32_t dtype, int lanes, int64_t per_part, int64_t length, int lines,
                             const Where& where) {
  using State = typename R::State;
  cuda::ReduceArguments<1> a;
  a.dtype = dtype, a.lanes = lanes, a.linear = true, a.elements = length, a.per_part = per_part;
  const int thread = static_cast<int>(threadIdx.x), lane = thread & (lanes - 1), group = thread / lanes;
  const int groups = static_cast<int>(cuda::kReduceThreads) / lanes;
  for (int first = 0; first < lines; first += groups) {
    cuda::keep_rolled(first);
    const int t = first + group;
    State s;
    r.start(s);
    if (t < lines) {
      a.base[0] = where(t);
      const int64_t kept[2] = {0, 0};
      cuda::take_row(r, s, a, cuda::part_of_row<R>(a, kept), 0, lane);
    }
    s = cuda::merge_group(s, lanes, [&](State& into, const State& other) { r.merge(into, other); });
    if (lane == 0 && t < lines) r.finish(0, t, s);
  }
}

// ---- softmax, its gradient and layer_norm ----

__device__ __forceinline__ bool begins_at_packet(const char* data) {
  return (reinterpret_cast<uintptr_t>(data) & 15u) == 0;
}

// One thread's share of a line, as line_sums.cuh wants it. Nothing is kept: it is near.
template <class S, int W>
struct LineShare {
  using C = typename cuda::Access<S>::C;
  const char* x;
  uint32_t dtype;
  int64_t length;
  int lane, lanes;

  template <class Body>
  __device__ __forceinline__ void each(const Body& body) const {
    for (int64_t i = static_cast<int64_t>(lane) * W; i < length; i += static_cast<int64_t>(lanes) * W) {
      cuda::keep_rolled(i);
      body(i, static_cast<C*>(nullptr));
    }
  }
  __device__ __forceinline__ void fetch(int64_t i, C (&values)[W]) const {
    cuda::load<S, W>(dtype, x + i * int64_t{sizeof(S)}, values);
  }
  __device__ __forceinline__ void again(int64_t i, const C*, C (&values)[W]) const { fetch(i, values); }
  __device__ __forceinline__ void keep(C*, const C (&)[W]) const {}
  __device__ __forceinline__ void keep_powers(C*, const C (&)[W]) const {}
};

// body(t, share, mine) for lines that groups of `lanes` threads have. Called by all threads of the block.
template <class S, int W, class Where, class Body>
__device__ __forceinline__ void each_line(uint32_t dtype, int lanes, int64_t length, int lines, const Where& where,
                                          const Body& body) {
  const int thread = static_cast<int>(threadIdx.x), group = thread / lanes;
  const int groups = static_cast<int>(cuda::kReduceThreads) / lanes;
  for (int first = 0; first < lines; first += groups) {
    cuda::keep_rolled(first);
    const int t = first + group;
    const bool mine = t < lines;
    body(t, LineShare<S, W>{mine ? where(t) : nullptr, dtype, length, thread & (lanes - 1), lanes}, mine);
  }
}

// The denominators of lines, for softmax.
template <class S, int W, class Where>
__device__ void find_totals(char* to, uint32_t dtype, int lanes, int64_t length, int lines, const Where& where) {
  using C = typename cuda::Access<S>::C;
  each_line<S, W>(dtype, lanes, length, lines, where, [&](int t, const LineShare<S, W>& share, bool mine) {
    cuda::Powers<C> state{0, -std::numeric_limits<C>::infinity()};
    if (mine) state.top = cuda::largest_of_line<W, C>(share);
    auto merge = [](cuda::Powers<C>& into, const cuda::Powers<C>& other) { cuda::merge_powers(into, other); };
    state = cuda::merge_group(state, lanes, merge);
    state.sum = cuda::merge_group(mine ? cuda::powers_of_line<W>(share, state.top) : 0.0, lanes, cuda::AddUp());
    if (mine && share.lane == 0) reinterpret_cast<cuda::Total<C>*>(to)[t] = cuda::Total<C>(state);
  });
}

// The totals of softmax's gradient: a warp has a line, as in its own kernel. y_at(t), dy_at(t): where lines lie;
// beyond_at(t): how far behind a line of the memory y's would, in a tensor.
template <class S, bool kLog, class Y, class Flow, class Beyond>
__device__ void find_flows(char* to, int64_t length, int lines, const Y& y_at, const Flow& dy_at,
                           const Beyond& beyond_at) {
  using C = typename cuda::Access<S>::C;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int t = warp; t < lines; t += static_cast<int>(cuda::kReduceThreads) / 32) {
    cuda::keep_rolled(t);
    const cuda::Stretch<S> part(beyond_at(t), length, lane, 32);
    const double total = cuda::merge_group(cuda::flow_of_line(part, y_at(t), dy_at(t), kLog), 32, cuda::AddUp());
    if (lane == 0) reinterpret_cast<C*>(to)[t] = static_cast<C>(total);
  }
}

// Means and 1 / sqrt(variance + eps), for layer_norm.
template <class S, int W, class Where>
__device__ void find_scales(char* mean, char* invstd, double eps, uint32_t dtype, int lanes, int64_t length, int lines,
                            const Where& where) {
  using C = typename cuda::Access<S>::C;
  each_line<S, W>(dtype, lanes, length, lines, where, [&](int t, const LineShare<S, W>& share, bool mine) {
    const auto scale = cuda::scale_of_line<W, C>(share, mine, lanes, static_cast<double>(length), eps);
    if (!mine || share.lane != 0) return;
    reinterpret_cast<C*>(mean)[t] = scale.mean, reinterpret_cast<C*>(invstd)[t] = scale.invstd;
  });
}
// The same where a warp has its line in registers, kEach elements a lane.
template <class S, int kEach, class Where>
__device__ void find_scales_kept(char* mean, char* invstd, double eps, int64_t length, int lines, const Where& where) {
  constexpr int W = cuda::Access<S>::kWidth;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int t = warp; t < lines; t += static_cast<int>(cuda::kReduceThreads) / 32) {
    cuda::keep_rolled(t);
    float values[kEach / W][W];
    const auto scale =
        cuda::keep_line<S>(where(t), lane, static_cast<int32_t>(length), 1 / static_cast<double>(length), eps, values);
    if (lane != 0) continue;
    reinterpret_cast<float*>(mean)[t] = scale.mean, reinterpret_cast<float*>(invstd)[t] = scale.invstd;
  }
}

}  // namespace cuda::fused
