// SPDX-License-Identifier: Apache-2.0
// The kernels that reduce: by rows (a group of threads a result, reading along it) and by columns (neighbouring results
// side by side). What is computed is a reducer's business (reducers.cuh):
//   using Storage;  static constexpr int kOperands;  struct State (trivial, at most kStateBytes);
//   void start(State&)                                                           of nothing
//   State state_of<M>(const C (&values)[kOperands][M], int64_t k, place)         of M elements; place(j): which ones
//   void merge(State& into, const State& other)
//   void finish(int64_t k, int64_t at, const State&)                             at: where result k lies in the output
// Results of a row by row kernel's parts go through the workspace and a second launch.
#pragma once

#include "access.cuh"
#include "group.cuh"
#include "kernel.hpp"
#include "reduce_shape.hpp"

namespace cuda {

// What lies where in the elements begin .. begin + count - 1 of a result, of which one block has a part: `head` single
// ones in front of the first packet, packets, and single ones behind. The elements of a nest either all are in packets
// or none is.
template <int N>
struct RowPart {
  int64_t start[N];  // offset of the result's first element
  int64_t begin, count, head, packets;
};

template <class R>
__device__ __forceinline__ RowPart<R::kOperands> part_of_row(const ReduceArguments<R::kOperands>& a,
                                                             const int64_t (&kept)[R::kOperands + 1]) {
  using S = typename R::Storage;
  constexpr int N = R::kOperands, V = Access<S>::kWidth;
  RowPart<N> part;
  part.begin = blockIdx.y * a.per_part;
  int64_t end = part.begin + a.per_part;
  part.count = (end < a.elements ? end : a.elements) - part.begin;
  part.head = part.packets = 0;
  for (int n = 0; n < N; n++) part.start[n] = kept[n + 1];
  if constexpr (V > 1) {
    if (a.linear) {
      auto misaligned = [&](int n) {
        return static_cast<int32_t>(
            reinterpret_cast<uintptr_t>(a.base[n] + (part.start[n] + part.begin) * int64_t{sizeof(S)}) & 15u);
      };
      int32_t first = misaligned(0);
      bool together = true;
      for (int n = 1; n < N; n++) together = together && misaligned(n) == first;
      part.head = first == 0 ? 0 : (16 - first) / static_cast<int32_t>(sizeof(S));
      if (together && part.head < part.count) part.packets = (part.count - part.head) / V;
    } else if (a.packed) {
      part.packets = part.count / V;
    }
  }
  return part;
}

// U accesses of W elements, `step` apart.
template <int W, int U, class R>
__device__ __forceinline__ typename R::State take(const R& r, const ReduceArguments<R::kOperands>& a,
                                                  const RowPart<R::kOperands>& part, int64_t k, int64_t q,
                                                  int64_t step) {
  using S = typename R::Storage;
  constexpr int N = R::kOperands;
  // The number of the first element of access q.
  auto number = [&](int64_t access) {
    if (W > 1) return part.begin + part.head + access * W;
    return part.begin + (access < part.head ? access : access + part.packets * Access<S>::kWidth);
  };
  typename Access<S>::C values[N][U * W];
#pragma unroll
  for (int u = 0; u < U; u++) {
    int64_t at[N];
    if (a.linear) {
      for (int n = 0; n < N; n++) at[n] = number(q + u * step);
    } else {
      a.reduced.locate(W > 1 ? part.begin / W + q + u * step : number(q + u * step), at);
    }
#pragma unroll
    for (int n = 0; n < N; n++) {
      const char* from = a.base[n] + (part.start[n] + at[n]) * Access<S>::bytes(a.dtype);
      load<S, W>(a.dtype, from, &values[n][u * W]);
    }
  }
  return r.template state_of<U * W>(values, k, [&](int j) { return number(q + j / W * step) + j % W; });
}

// The share of one thread in a part.
template <class R>
__device__ __forceinline__ void take_row(const R& r, typename R::State& s, const ReduceArguments<R::kOperands>& a,
                                         const RowPart<R::kOperands>& part, int64_t k, int lane) {
  constexpr int V = Access<typename R::Storage>::kWidth, kDeep = V >= 8 ? 16 / V : 4;
  int64_t step = a.lanes, q = lane, packets = part.packets, single = lane, singles = part.count - packets * V;
  for (;;) {
    keep_rolled(q);
    typename R::State more;
    if (V > 1 && q < packets) {
      if (q + (kDeep - 1) * step < packets) {
        more = take<V, kDeep>(r, a, part, k, q, step);
        q += kDeep * step;
      } else {
        more = take<V, 1>(r, a, part, k, q, step);
        q += step;
      }
    } else if (single < singles) {
      if (kDeep > 1 && V > 1 && single + 3 * step < singles) {
        more = take<1, 4>(r, a, part, k, single, step);
        single += 4 * step;
      } else {
        more = take<1, 1>(r, a, part, k, single, step);
        single += step;
      }
    } else {
      return;
    }
    r.merge(s, more);
  }
}

template <class R>
__global__ void __launch_bounds__(kReduceThreads, 2) reduce_rows(R r, ReduceArguments<R::kOperands> a) {
  using State = typename R::State;
  constexpr int N = R::kOperands;
  int lane = static_cast<int>(threadIdx.x) & (a.lanes - 1), groups = kReduceThreads / a.lanes;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * groups; first < a.results;
       first += static_cast<int64_t>(gridDim.x) * groups) {
    int64_t k = first + static_cast<int>(threadIdx.x) / a.lanes, kept[N + 1];
    State s;
    r.start(s);
    if (k < a.results) {
      a.kept.locate(k, kept);
      if (a.from != nullptr) {
        auto* from = static_cast<const State*>(a.from) + k * a.from_result;
        for (int64_t i = lane; i < a.parts; i += a.lanes) {
          keep_rolled(i);
          r.merge(s, from[i * a.from_part]);
        }
      } else {
        take_row(r, s, a, part_of_row<R>(a, kept), k, lane);
      }
    }
    s = merge_group(s, a.lanes, [&](State& into, const State& other) { r.merge(into, other); });
    if (lane == 0 && k < a.results) {
      if (a.to != nullptr)
        static_cast<State*>(a.to)[k * gridDim.y + blockIdx.y] = s;
      else
        r.finish(k, kept[0], s);
    }
  }
}

// U elements of a column, `step` apart.
template <int U, class R>
__device__ __forceinline__ typename R::State take_column(const R& r, const ReduceArguments<R::kOperands>& a,
                                                         const int64_t (&kept)[R::kOperands + 1], int64_t k, int64_t p,
                                                         int step) {
  using S = typename R::Storage;
  constexpr int N = R::kOperands;
  typename Access<S>::C values[N][U];
#pragma unroll
  for (int u = 0; u < U; u++) {
    int64_t at[N];
    a.reduced.locate(p + u * step, at);
#pragma unroll
    for (int n = 0; n < N; n++) {
      load<S, 1>(a.dtype, a.base[n] + (kept[n + 1] + at[n]) * Access<S>::bytes(a.dtype), &values[n][u]);
    }
  }
  return r.template state_of<U>(values, k, [&](int j) { return p + j * step; });
}

// A thread reduces a column; the threads of a block that have the same one take every `behind`th element of it.
template <class R>
__global__ void __launch_bounds__(kReduceThreads, 2) reduce_columns(R r, ReduceArguments<R::kOperands> a) {
  using State = typename R::State;
  constexpr int N = R::kOperands;
  constexpr int64_t kElement = sizeof(typename Access<typename R::Storage>::C);
  constexpr int U = Access<typename R::Storage>::kWidth == 1 ? 1 : kElement <= 4 ? 8 : 4;
  __shared__ State shared[kReduceThreads];
  int thread = static_cast<int>(threadIdx.x), side = thread & (a.lanes - 1), row = thread / a.lanes;
  int behind = kReduceThreads / a.lanes;
  int64_t tiles = a.results / a.columns * a.tiles;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    int64_t outer = tile / a.tiles, column = (tile - outer * a.tiles) * a.lanes + side;
    int64_t k = outer * a.columns + column, kept[N + 1];
    bool mine = column < a.columns;
    State s;
    r.start(s);
    if (mine) {
      a.kept.locate(k, kept);
      int64_t end = (blockIdx.y + int64_t{1}) * a.per_part, p = blockIdx.y * a.per_part + row;
      if (end > a.elements) end = a.elements;
      while (p < end) {
        keep_rolled(p);
        State more;
        if (U > 1 && p + (U - 1) * behind < end) {
          more = take_column<U>(r, a, kept, k, p, behind);
          p += U * behind;
        } else {
          more = take_column<1>(r, a, kept, k, p, behind);
          p += behind;
        }
        r.merge(s, more);
      }
    }
    shared[thread] = s;
    __syncthreads();
    for (int half = behind / 2; half > 0; half /= 2) {
      keep_rolled(half);
      if (row < half) r.merge(shared[thread], shared[thread + half * a.lanes]);
      __syncthreads();
    }
    if (row == 0 && mine) {
      if (a.to != nullptr)
        static_cast<State*>(a.to)[blockIdx.y * a.results + k] = shared[thread];
      else
        r.finish(k, kept[0], shared[thread]);
    }
    __syncthreads();  // before the next tile's states
  }
}

// Reduces the operands at `base`; workspace: shape.workspace() bytes.
template <class R>
void reduce(const Launch& launch, const ReduceShape<R::kOperands>& shape, const R& r, const void* const* base,
            void* workspace) {
  static_assert(sizeof(typename R::State) <= kStateBytes);
  if (shape.results() == 0) return;
  ReduceArguments<R::kOperands> a = shape.arguments(base, Access<typename R::Storage>::kWidth);
  const Grid& grid = shape.grid();
  a.to = grid.y > 1 ? workspace : nullptr;
  launch(grid, a.columns > 0 ? reduce_columns<R> : reduce_rows<R>, r, a);
  if (grid.y <= 1) return;
  shape.second_pass(a, workspace);
  launch(plan_rows(shape.results(), a.parts, 1, false).grid, reduce_rows<R>, r, a);
}

}  // namespace cuda
