// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/window.hpp: the geometry that convolution and pooling share.
#pragma once

#include <algorithm>

#include "perigee/kernels/reference/operand.hpp"

namespace pg::reference {

struct Window {
  int64_t kernel[2], stride[2] = {1, 1}, padding[2] = {0, 0}, dilation[2] = {1, 1};
  // The input position under tap `k` of output position `o`; may lie outside.
  int64_t at(int axis, int64_t o, int64_t k) const { return o * stride[axis] - padding[axis] + k * dilation[axis]; }
};

// Calls body(h, w, kh, kw) for the taps of one output position that lie inside an input of height x width.
template <class Body>
void each_tap(const Window& window, int64_t oh, int64_t ow, int64_t height, int64_t width, Body&& body) {
  for (int64_t kh = 0; kh < window.kernel[0]; kh++) {
    int64_t h = window.at(0, oh, kh);
    if (h < 0 || h >= height) continue;
    for (int64_t kw = 0; kw < window.kernel[1]; kw++) {
      int64_t w = window.at(1, ow, kw);
      if (w >= 0 && w < width) body(h, w, kh, kw);
    }
  }
}

}  // namespace pg::reference
