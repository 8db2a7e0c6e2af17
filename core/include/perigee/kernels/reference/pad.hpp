// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/pad.hpp: elements added at the ends of axes, and the way back.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>

#include "perigee/kernels/reference/create.hpp"

namespace pg::reference {

struct Padding {
  std::string mode;  // constant, reflect, replicate, circular
  Dims before, behind;

  // The position of an axis of n that position i of the padded axis shows; -1: none.
  int64_t source(size_t axis, int64_t n, int64_t i) const {
    int64_t a = axis < before.size() ? before[axis] : 0, b = axis < behind.size() ? behind[axis] : 0;
    int64_t p = i - a;
    if (mode == "circular") {  // goes round what is left
      int64_t first = std::max<int64_t>(0, -a), left = n - first + std::min<int64_t>(0, b);
      return first + ((p - first) % left + left) % left;
    }
    if (p >= std::max<int64_t>(0, -a) && p < n + std::min<int64_t>(0, b)) return p;
    if (mode == "reflect") return n - 1 - std::abs(n - 1 - std::abs(p));
    return mode == "replicate" ? std::clamp<int64_t>(p, 0, n - 1) : -1;
  }
};

// Calls body(i, element of x that padded element i shows, or -1), in row-major order.
template <class Body>
void each_padded(const Padding& padding, const Dims& x, const Dims& padded, Body&& body) {
  Dims own = dense(padded), stride = dense(x);
  for (int64_t i = 0; i < product(padded); i++) {
    int64_t at = 0;
    for (size_t d = 0; d < x.size() && at >= 0; d++) {
      int64_t source = padding.source(d, x[d], i / own[d] % padded[d]);
      at = source < 0 ? -1 : at + source * stride[d];
    }
    body(i, at);
  }
}

inline void pad(const Padding& padding, const Operand& x, double value, const Operand& y) {
  if (y.count() == 0) return;
  fill(value, y);
  with_compute(x.dtype, [&](auto tag) {
    auto in = read<decltype(tag)>(x), out = read<decltype(tag)>(y);
    each_padded(padding, x.shape, y.shape, [&](int64_t i, int64_t at) {
      if (at >= 0) out[i] = in[at];
    });
    write(y, out);
  });
}

inline void pad_grad(const Padding& padding, const Operand& dy, const Operand& dx) {
  with_compute(dy.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto flow = read<W>(dy);
    std::vector<Sum<W>> out(static_cast<size_t>(dx.count()), 0);
    each_padded(padding, dx.shape, dy.shape, [&](int64_t i, int64_t at) {
      if (at >= 0) out[at] = wrapping_add<Sum<W>>(out[at], flow[i]);
    });
    write(dx, out);
  });
}

}  // namespace pg::reference
