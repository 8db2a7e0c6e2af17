// SPDX-License-Identifier: Apache-2.0
// From the number of an element to where it lies in strided operands. Built on the host, walked by kernels; where the
// count fits into 31 bits without a division.
#pragma once

#include <cstdint>

#include "perigee/kernels/hd.hpp"
#include "perigee/kernels/strided.hpp"

namespace cuda {

constexpr int64_t kNarrow = int64_t{1} << 31;  // counts below it are walked in 32 bits

// Divides numbers below 2^31 by one multiplication: n / d = (n + high half of n * m) >> s.
struct Divider {
  uint32_t divisor = 1, multiplier = 1, shift = 0;
  Divider() = default;
  explicit constexpr Divider(int64_t d) : divisor(static_cast<uint32_t>(d)) {
    while ((uint64_t{1} << shift) < divisor) shift++;
    multiplier = static_cast<uint32_t>((((uint64_t{1} << shift) - divisor) << 32) / divisor + 1);
  }
  PG_HD uint32_t divide(uint32_t n) const {
    auto high = static_cast<uint32_t>(static_cast<uint64_t>(n) * multiplier >> 32);
    return (n + high) >> shift;
  }
};

// Keeps the compiler from unrolling a loop that counts in d: several dimensions at a time are more code, not more
// speed.
PG_HD void keep_loop(int& d) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+r"(d));
#else
  (void)d;
#endif
}

// A size that kernels divide element numbers by. `narrow` is said by the caller: whether all of them are below kNarrow.
struct Extent {
  int64_t size = 1;
  Divider divider;
  Extent() = default;
  explicit constexpr Extent(int64_t n) : size(n), divider(n > 0 && n <= kNarrow ? n : 1) {}
  // n / size, and n becomes what is left.
  PG_HD int64_t split(int64_t& n, bool narrow) const {
    int64_t quotient = narrow ? divider.divide(static_cast<uint32_t>(n)) : n / size;
    n -= quotient * size;
    return quotient;
  }
};

// The nest's dimensions, outermost first.
template <int N>
struct Walk {
  int64_t count = 1;
  int32_t rank = 0;
  bool narrow = true;
  Extent extent[PG_MAX_RANK];
  int64_t stride[N][PG_MAX_RANK] = {};

  Walk() = default;
  explicit Walk(const pg::Nest<N>& nest) : count(nest.count), rank(nest.rank), narrow(nest.count < kNarrow) {
    for (int d = 0; d < rank; d++) {
      extent[d] = Extent(nest.shape[d]);
      for (int k = 0; k < N; k++) stride[k][d] = nest.stride[k][d];
    }
  }
  // Whether element p of the operand lies p elements from its start.
  bool linear(int operand) const { return count <= 1 || (rank == 1 && stride[operand][0] == 1); }

  // at[k]: where element p of operand k lies, in elements.
  PG_HD void locate(int64_t p, int64_t (&at)[N]) const {
    for (int k = 0; k < N; k++) at[k] = 0;
    for (int d = rank - 1; d > 0; d--) {
      keep_loop(d);
      int64_t rest = extent[d].split(p, narrow), own = p;
      p = rest;
      for (int k = 0; k < N; k++) at[k] += own * stride[k][d];
    }
    if (rank == 0) return;
    for (int k = 0; k < N; k++) at[k] += p * stride[k][0];
  }
  PG_HD int64_t offset(int64_t p) const {
    static_assert(N == 1, "locate finds the offsets of several");
    int64_t at[1];
    locate(p, at);
    return at[0];
  }
};

// The walk over one tensor, row-major.
inline Walk<1> walk_of(uint32_t rank, const int64_t* shape, const int64_t* stride) {
  int64_t strides[1][PG_MAX_RANK] = {};
  for (uint32_t i = 0; i < rank; i++) strides[0][i] = stride[i];
  return Walk<1>(pg::make_nest<1>(rank, shape, strides, false));
}
inline Walk<1> walk_of(const pg_tensor& t) { return walk_of(t.rank, t.shape, t.stride); }

}  // namespace cuda
