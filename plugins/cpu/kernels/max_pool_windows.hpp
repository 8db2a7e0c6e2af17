// SPDX-License-Identifier: Apache-2.0
// What windows of maximum pooling look at, and what wins.
#pragma once

#include "kernels/planes.hpp"
#include "perigee/kernels/out_of_range.hpp"
#include "perigee/kernels/resample.hpp"

namespace pg::cpu::max_pool {

template <class A>
PG_INLINE bool beats(A value, A best) {
  if constexpr (std::is_floating_point_v<A>) {
    return static_cast<bool>(static_cast<int>(value > best) | static_cast<int>(value != value));
  } else {
    return value > best;
  }
}

// Accumulators of integers are unsigned; order is that of the stored type.
template <class T>
PG_INLINE auto signed_value(Accumulator<T> x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x);
  } else {
    return x;
  }
}
template <class T, class A>
PG_INLINE T store_signed(A x) {
  if constexpr (std::is_integral_v<T>) {
    return x;
  } else {
    return store<T>(x);
  }
}
template <class T>
T lowest() {
  if constexpr (std::is_integral_v<T>) {
    return std::numeric_limits<T>::lowest();
  } else {
    return store<T>(-std::numeric_limits<Accumulator<T>>::infinity());
  }
}

// The places of one axis that an output looks at: first, first + step, ..., `count` of them.
struct Places {
  int64_t first, step, count;
};
inline Places window_of(const Pool& p, int axis, int64_t o) {
  int64_t first = o * p.stride[axis] - p.padding[axis], step = p.dilation[axis];
  Taps taps = taps_inside(first, p.kernel[axis], step, p.in[axis]);
  return {first + taps.begin * step, step, taps.end - taps.begin};
}
inline Places share_of(const Pool& p, int axis, int64_t o) {
  int64_t begin = share_begin(o, p.in[axis], p.out[axis]);
  return {begin, 1, share_end(o, p.in[axis], p.out[axis]) - begin};
}

inline bool is_adaptive(const KernelCall& call) { return std::strncmp(call.op(), "adaptive", 8) == 0; }
inline Pool read_max_pool(const KernelCall& call) {
  if (is_adaptive(call)) return read_planes(call, call.in(0), call.out(0));
  Pool p = read_pool(call, call.in(0), call.out(0));
  read_list(call, "dilation", call.in(0).rank - 2, p.dilation);
  return p;
}

}  // namespace pg::cpu::max_pool
