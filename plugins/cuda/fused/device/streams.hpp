// SPDX-License-Identifier: Apache-2.0
// What generated kernels that stream lines (stream_source.cpp) are written with: a thread reduces elements as it makes
// them, and takes of a line those, and in that order, that it takes in the operator's own kernel (reduce.cuh).
#pragma once

#include "lines.hpp"

namespace cuda::fused {

// An element, which lies in memory as T, as reducer R takes it.
template <class R, class T, class V>
__device__ __forceinline__ typename cuda::Access<typename R::Storage>::C as_element(V x) {
  using S = typename R::Storage;
  using C = typename cuda::Access<S>::C;
  if constexpr (std::is_unsigned_v<S>)
    return static_cast<C>(bits_as<S>(convert<T>(x)));
  else
    return static_cast<C>(x);
}

// M elements into a state; kTogether: as many as the operator takes at a time, or 1.
template <int kTogether, class R, int M, class Place>
__device__ __forceinline__ void add_elements(const R& r, typename R::State& s,
                                             const typename cuda::Access<typename R::Storage>::C (&values)[1][M],
                                             int64_t k, const Place& place) {
  if constexpr (kTogether == 1) {
#pragma unroll
    for (int m = 0; m < M; m++) {
      const typename cuda::Access<typename R::Storage>::C one[1][1] = {{values[0][m]}};
      r.merge(s, r.template state_of<1>(one, k, [&](int) { return place(m); }));
    }
  } else {
    r.merge(s, r.template state_of<M>(values, k, place));
  }
}

template <int kCount>
using Count = std::integral_constant<int, kCount>;

// Part `part` of line `line` of a tensor that begins at 16 aligned bytes, V elements: take(Count<W>(), Count<U>(),
// number): U accesses of W elements, number(u): the first one's place in the line. As take_row.
template <int V, class Take>
__device__ __forceinline__ void walk_row(int64_t line, int64_t length, int64_t part, int64_t per_part, int lanes,
                                         int lane, const Take& take) {
  constexpr int kDeep = V >= 8 ? 16 / V : 4;
  const int64_t begin = part * per_part, end = begin + per_part, count = (end < length ? end : length) - begin;
  int64_t head = 0, packets = 0;
  if constexpr (V > 1) {
    const auto misaligned = static_cast<int32_t>((line * length + begin) % V);
    head = misaligned == 0 ? 0 : V - misaligned;
    if (head < count) packets = (count - head) / V;
  }
  const int64_t step = lanes, singles = count - packets * V;
  int64_t q = lane, single = lane;
  auto packet = [&](int u) { return begin + head + (q + u * step) * V; };
  auto element = [&](int u) {
    const int64_t access = single + u * step;
    return begin + (access < head ? access : access + packets * V);
  };
  for (;;) {
    cuda::keep_rolled(q);
    if (V > 1 && q < packets) {
      if (q + (kDeep - 1) * step < packets) {
        take(Count<V>(), Count<kDeep>(), packet);
        q += kDeep * step;
      } else {
        take(Count<V>(), Count<1>(), packet);
        q += step;
      }
    } else if (single < singles) {
      if (V > 1 && kDeep > 1 && single + 3 * step < singles) {
        take(Count<1>(), Count<4>(), element);
        single += 4 * step;
      } else {
        take(Count<1>(), Count<1>(), element);
        single += step;
      }
    } else {
      return;
    }
  }
}

// Part `part` of a column: every `behind`th element from `row` on, U together. As reduce_columns.
template <int U, class Take>
__device__ __forceinline__ void walk_column(int64_t length, int64_t part, int64_t per_part, int row, int behind,
                                            const Take& take) {
  int64_t end = (part + 1) * per_part, p = part * per_part + row;
  if (end > length) end = length;
  auto number = [&](int u) { return p + u * behind; };
  while (p < end) {
    cuda::keep_rolled(p);
    if (U > 1 && p + (U - 1) * behind < end) {
      take(Count<1>(), Count<U>(), number);
      p += U * behind;
    } else {
      take(Count<1>(), Count<1>(), number);
      p += behind;
    }
  }
}

// The states of the threads that have one column, merged: of the first of them. Called by all threads of the block.
template <class R>
__device__ typename R::State merge_column(const R& r, const typename R::State& s, int lanes) {
  using State = typename R::State;
  __shared__ State shared[cuda::kReduceThreads];
  const int thread = static_cast<int>(threadIdx.x), row = thread / lanes;
  __syncthreads();  // of the use before
  shared[thread] = s;
  __syncthreads();
  for (int half = static_cast<int>(cuda::kReduceThreads) / lanes / 2; half > 0; half /= 2) {
    cuda::keep_rolled(half);
    if (row < half) r.merge(shared[thread], shared[thread + half * lanes]);
    __syncthreads();
  }
  return shared[thread];
}

template <class R>
__device__ __forceinline__ void put_state(char* states, int64_t at, const typename R::State& s) {
  reinterpret_cast<typename R::State*>(states)[at] = s;
}
// The states of a line's parts, `apart` from each other; a group of threads shares them out.
template <class R>
__device__ __forceinline__ typename R::State merge_parts(const R& r, const char* states, int64_t k, int64_t apart,
                                                         int64_t parts, int lanes, int lane, bool mine) {
  typename R::State s;
  r.start(s);
  if (mine) {
    for (int64_t i = lane; i < parts; i += lanes) {
      cuda::keep_rolled(i);
      r.merge(s, reinterpret_cast<const typename R::State*>(states)[k + i * apart]);
    }
  }
  return cuda::merge_group(s, lanes, [&](auto& into, const auto& other) { r.merge(into, other); });
}

// What a reducer makes of a state, as it lies in memory.
template <class T, class R>
__device__ __forceinline__ T finished(R r, const typename R::State& s) {
  T result;
  r.out = &result;
  r.finish(0, 0, s);
  return result;
}

}  // namespace cuda::fused
