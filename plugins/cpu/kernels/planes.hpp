// SPDX-License-Identifier: Apache-2.0
// What pooling kernels share: windows over planes, and sums into planes.
#pragma once

#include <algorithm>
#include <limits>
#include <mutex>
#include <vector>

#include "kernels/windows.hpp"
#include "linalg/dense.hpp"

namespace pg::cpu {

// Blocks [d, h, w] in planes of x and y; of images d is 1.
struct Pool {
  int64_t planes = 1, in[3], out[3], kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0},
          dilation[3] = {1, 1, 1};

  int64_t in_count() const { return in[0] * in[1] * in[2]; }
  int64_t out_count() const { return out[0] * out[1] * out[2]; }
};

// x or dx, and y or dy: [n, c, ...] both.
inline Pool read_planes(const KernelCall& call, const pg_tensor& x, const pg_tensor& y) {
  if (x.rank < 3 || x.rank > 5 || x.rank != y.rank) fail_argument(format("%s: x must have 3 to 5 axes", call.op()));
  Pool p;
  p.planes = x.shape[0] * x.shape[1];
  read_sizes(x, p.in), read_sizes(y, p.out);
  return p;
}
inline Pool read_pool(const KernelCall& call, const pg_tensor& x, const pg_tensor& y) {
  Pool p = read_planes(call, x, y);
  read_list(call, "kernel", x.rank - 2, p.kernel);
  read_list(call, "kernel", x.rank - 2, p.stride);  // which it is where none is given
  read_list(call, "stride", x.rank - 2, p.stride), read_list(call, "padding", x.rank - 2, p.padding);
  return p;
}

// The taps begin .. end - 1 of a window that lie inside 0 .. size - 1. `first` is where tap 0 lies.
struct Taps {
  int64_t begin, end;
};
inline Taps taps_inside(int64_t first, int64_t count, int64_t dilation, int64_t size) {
  int64_t begin = first < 0 ? (-first + dilation - 1) / dilation : 0;
  int64_t end = first >= size ? 0 : std::min(count, (size - first + dilation - 1) / dilation);
  return {std::min(begin, std::max<int64_t>(end, 0)), std::max<int64_t>(end, 0)};
}

// What each output along the three axes looks at, as far as there are outputs at all. Long tables are made at the first
// launch: by then there is memory for the outputs, of which an axis that is spread out has many for few inputs.
template <class Entry>
class AxisTables {
 public:
  static constexpr int64_t kLong = 1 << 20;
  // entry(axis, o) for output o of an axis.
  template <class Make>
  AxisTables(const Pool& p, Make&& entry) : long_(std::max({p.out[0], p.out[1], p.out[2]}) > kLong) {
    if (p.planes * p.out_count() != 0 && !long_) fill(p, entry);
  }
  bool is_long() const { return long_; }
  template <class Make>
  void at_launch(const Pool& p, Make&& entry) const {
    if (long_) std::call_once(filled_, [&] { fill(p, entry); });
  }
  const std::vector<Entry>& operator[](int axis) const { return entries_[axis]; }

 private:
  template <class Make>
  void fill(const Pool& p, Make&& entry) const {
    for (int axis = 0; axis < 3; axis++) entries_[axis].reserve(static_cast<size_t>(p.out[axis]));
    for (int axis = 0; axis < 3; axis++)
      for (int64_t o = 0; o < p.out[axis]; o++) entries_[axis].push_back(entry(axis, o));
  }
  bool long_;
  mutable std::once_flag filled_;
  mutable std::vector<Entry> entries_[3];
};

inline int64_t plane_grain(int64_t work) { return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, work)); }

// Planes of sums. 16-bit floats are summed in float32 planes of the workspace, one per slice of threads.
template <class T>
class PlaneSums {
 public:
  static constexpr bool kDirect = std::is_same_v<T, Accumulator<T>>;
  PlaneSums() = default;
  PlaneSums(int64_t planes, int64_t size) : planes_(planes), size_(size) {
    slices_ = std::max<int64_t>(1, std::min<int64_t>(thread_count(), planes));
  }
  uint64_t bytes() const { return kDirect ? 0 : static_cast<uint64_t>(slices_ * size_) * sizeof(Accumulator<T>) + 64; }

  // add(plane, sums) adds to zeroed sums[size].
  template <class Add>
  void run(T* out, void* workspace, Add&& add) const {
    auto* scratch = static_cast<Accumulator<T>*>(Scratch(workspace).take(0));
    int64_t planes = planes_, size = size_, slices = slices_;
    if (planes * size == 0) return;
    if constexpr (kDirect) {
      parallel_for(planes, plane_grain(size), [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; plane++) {
          std::fill_n(out + plane * size, size, T{});
          add(plane, out + plane * size);
        }
      });
    } else {
      parallel_for(slices, plane_grain(planes / slices * size), [&](int64_t begin, int64_t end) {
        for (int64_t slice = begin; slice < end; slice++) {
          Accumulator<T>* sums = scratch + slice * size;
          for (int64_t plane = planes * slice / slices; plane < planes * (slice + 1) / slices; plane++) {
            std::fill_n(sums, size, Accumulator<T>{});
            add(plane, sums);
            for (int64_t i = 0; i < size; i++) out[plane * size + i] = store<T>(sums[i]);
          }
        }
      });
    }
  }

 private:
  int64_t planes_ = 0, size_ = 0, slices_ = 1;
};

}  // namespace pg::cpu
