// SPDX-License-Identifier: Apache-2.0
// Groups of 1, 2, 4, .. 32 neighbouring threads of a warp, or the threads of a whole block, that combine a value in a
// fixed order.
#pragma once

#include <cstring>

#include "launch.hpp"

namespace cuda {

constexpr uint32_t kFullWarp = 0xffffffffu;
constexpr int kMaxWarps = 32;

// Keeps a loop rolled: its counter changes where no compiler sees how. (#pragma unroll 1 is lost on inlining, and loops
// unrolled in vain are most of the time that compiling takes.)
template <class T>
__device__ __forceinline__ void keep_rolled(T& counter) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 8)
    asm volatile("" : "+l"(counter));
  else
    asm volatile("" : "+r"(counter));
#else
  (void)counter;
#endif
}

template <class T>
__device__ __forceinline__ T shuffle_xor(const T& value, int mask) {
  static_assert(sizeof(T) % 4 == 0);
  uint32_t words[sizeof(T) / 4];
  memcpy(words, &value, sizeof value);
  for (uint32_t& word : words) word = __shfl_xor_sync(kFullWarp, word, mask);
  T other;
  memcpy(&other, words, sizeof other);
  return other;
}

template <class T>
__device__ __forceinline__ T shuffle_up(const T& value, int distance) {
  static_assert(sizeof(T) % 4 == 0);
  uint32_t words[sizeof(T) / 4];
  memcpy(words, &value, sizeof value);
  for (uint32_t& word : words) word = __shfl_up_sync(kFullWarp, word, distance);
  T other;
  memcpy(&other, words, sizeof other);
  return other;
}

// Merges the values of each group: all its threads get the result, if merge(into, other) is commutative the same bits;
// thread 0 of the group in any case a fixed order. lanes: 1 .. 32, a power of two, or the size of the block. All
// threads of the block call it.
template <class T, class Merge>
__device__ __forceinline__ T merge_group(T value, int lanes, const Merge& merge) {
  for (int step = (lanes < 32 ? lanes : 32) / 2; step > 0; step /= 2) {
    keep_rolled(step);
    merge(value, shuffle_xor(value, step));
  }
  if (lanes <= 32) return value;
  __shared__ T partial[kMaxWarps];
  int warp = static_cast<int>(threadIdx.x) / 32, warps = lanes / 32;
  __syncthreads();  // of the use before
  if (threadIdx.x % 32 == 0) partial[warp] = value;
  __syncthreads();
  T result = partial[0];
  for (int i = 1; i < warps; i++) {
    keep_rolled(i);
    merge(result, partial[i]);
  }
  return result;
}

struct AddUp {
  template <class T>
  __device__ __forceinline__ void operator()(T& into, const T& other) const {
    into += other;
  }
};

// Sums of a fixed number of values, as a tree.
template <int M, class T>
__device__ __forceinline__ T tree_sum(const T (&values)[M]) {
  T sums[M];
  for (int i = 0; i < M; i++) sums[i] = values[i];
#pragma unroll
  for (int step = 1; step < M; step *= 2) {
#pragma unroll
    for (int i = 0; i + step < M; i += 2 * step) sums[i] += sums[i + step];
  }
  return sums[0];
}

}  // namespace cuda
