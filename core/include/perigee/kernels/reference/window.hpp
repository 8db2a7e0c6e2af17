// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/window.hpp: the geometry that convolution and pooling share. One and two axes are three
// with leading axes of size 1.
#pragma once

#include <algorithm>

#include "perigee/kernels/reference/operand.hpp"

namespace pg::reference {

struct Window {
  int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
  // The input position under tap `k` of output position `o`; may lie outside.
  int64_t at(int axis, int64_t o, int64_t k) const { return o * stride[axis] - padding[axis] + k * dilation[axis]; }
};

// The sizes that a window slides over: the last axes of [N, C, ...], with ones in front.
struct Extents {
  int64_t size[3] = {1, 1, 1};
  Extents() = default;
  explicit Extents(const Dims& shape) {
    for (size_t i = 2; i < shape.size(); i++) size[i + 3 - shape.size()] = shape[i];
  }
  int64_t count() const { return size[0] * size[1] * size[2]; }
  // Position `at` in row-major order, taken apart.
  void split(int64_t at, int64_t (&position)[3]) const {
    position[2] = at % size[2], position[1] = at / size[2] % size[1], position[0] = at / size[2] / size[1];
  }
};

// Calls body(place in the input, tap) for the taps of one output position that lie inside the input; both count in
// row-major order. A window may be far larger than the input: only taps inside are looked at.
template <class Body>
void each_tap(const Window& window, const int64_t (&o)[3], const Extents& in, Body&& body) {
  int64_t first[3], end[3];
  uint64_t rows = static_cast<uint64_t>(window.kernel[1]), columns = static_cast<uint64_t>(window.kernel[2]);
  for (int axis = 0; axis < 3; axis++) {
    int64_t at = window.at(axis, o[axis], 0), step = window.dilation[axis];
    first[axis] = at >= 0 ? 0 : (-at - 1) / step + 1;
    end[axis] = at >= in.size[axis] ? 0 : std::min(window.kernel[axis], (in.size[axis] - 1 - at) / step + 1);
  }
  for (int64_t kd = first[0]; kd < end[0]; kd++) {
    for (int64_t kh = first[1]; kh < end[1]; kh++) {
      for (int64_t kw = first[2]; kw < end[2]; kw++) {
        int64_t d = window.at(0, o[0], kd), h = window.at(1, o[1], kh), w = window.at(2, o[2], kw);
        uint64_t tap = (static_cast<uint64_t>(kd) * rows + static_cast<uint64_t>(kh)) * columns;
        body((d * in.size[1] + h) * in.size[2] + w, static_cast<int64_t>(tap + static_cast<uint64_t>(kw)));
      }
    }
  }
}

}  // namespace pg::reference
