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
// row-major order.
template <class Body>
void each_tap(const Window& window, const int64_t (&o)[3], const Extents& in, Body&& body) {
  int64_t tap = 0;
  for (int64_t kd = 0; kd < window.kernel[0]; kd++) {
    for (int64_t kh = 0; kh < window.kernel[1]; kh++) {
      for (int64_t kw = 0; kw < window.kernel[2]; kw++, tap++) {
        int64_t d = window.at(0, o[0], kd), h = window.at(1, o[1], kh), w = window.at(2, o[2], kw);
        bool inside = d >= 0 && d < in.size[0] && h >= 0 && h < in.size[1] && w >= 0 && w < in.size[2];
        if (inside) body((d * in.size[1] + h) * in.size[2] + w, tap);
      }
    }
  }
}

}  // namespace pg::reference
