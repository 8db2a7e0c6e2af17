// SPDX-License-Identifier: Apache-2.0
// What generated kernels of lines (line_source.cpp) are written with: lines that a block keeps in shared memory, and
// the plugin's own reductions (reduce.cuh) over them. Threads take of a line what they take of a tensor's: a line
// begins as far behind 16 aligned bytes as it would in a dense tensor, so that the order of additions is that of the
// operator.
#pragma once

#include "reduce.cuh"
#include "reducers.cuh"
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

}  // namespace cuda::fused
