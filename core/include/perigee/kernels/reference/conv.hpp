// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/conv.hpp: two-dimensional convolution (cross-correlation) and its gradients.
#pragma once

#include "perigee/kernels/reference/window.hpp"

namespace pg::reference {

struct ConvShape {
  int64_t batch, in_channels, height, width, out_channels, out_height, out_width, groups;
  Window window;
  ConvShape(const Dims& x, const Dims& weight, const Dims& y, Window geometry, int64_t groups)
      : batch(x[0]),
        in_channels(x[1]),
        height(x[2]),
        width(x[3]),
        out_channels(y[1]),
        out_height(y[2]),
        out_width(y[3]),
        groups(groups),
        window(geometry) {
    window.kernel[0] = weight[2];
    window.kernel[1] = weight[3];
  }
};

// Calls body(x row, weight, y row, from, to) for every pairing of one weight with one row of outputs: outputs
// [from, to) of the row see the input at position `x row + o stride`. The rest of the row sees padding.
template <class Body>
void each_row(const ConvShape& s, Body&& body) {
  const Window& win = s.window;
  int64_t in_per_group = s.in_channels / s.groups, out_per_group = s.out_channels / s.groups;
  for (int64_t n = 0; n < s.batch; n++) {
    for (int64_t o = 0; o < s.out_channels; o++) {
      for (int64_t i = 0; i < in_per_group; i++) {
        int64_t c = o / out_per_group * in_per_group + i;
        for (int64_t tap = 0; tap < win.kernel[0] * win.kernel[1]; tap++) {
          int64_t kh = tap / win.kernel[1], kw = tap % win.kernel[1], step = win.stride[1];
          int64_t first = win.at(1, 0, kw);  // where output 0 looks
          int64_t from = first >= 0 ? 0 : (-first + step - 1) / step;
          int64_t to = std::min(s.out_width, s.width <= first ? 0 : (s.width - 1 - first) / step + 1);
          for (int64_t oh = 0; oh < s.out_height; oh++) {
            int64_t h = win.at(0, oh, kh);
            if (h < 0 || h >= s.height) continue;
            int64_t x_row = ((n * s.in_channels + c) * s.height + h) * s.width + first;
            int64_t weight = (o * in_per_group + i) * win.kernel[0] * win.kernel[1] + tap;
            int64_t y_row = ((n * s.out_channels + o) * s.out_height + oh) * s.out_width;
            body(x_row, weight, y_row, from, to);
          }
        }
      }
    }
  }
}

inline void conv2d(const Operand& x, const Operand& weight, const Operand& bias, Window window, int64_t groups,
                   const Operand& y) {
  ConvShape s(x.shape, weight.shape, y.shape, window, groups);
  with_compute(x.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto in = read<W>(x), taps = read<W>(weight);
    std::vector<Sum<W>> out(static_cast<size_t>(y.count()), 0);
    if (bias) {
      auto start = read<W>(bias);
      int64_t plane = s.out_height * s.out_width;
      for (int64_t i = 0; i < y.count(); i++) out[i] = start[i / plane % s.out_channels];
    }
    each_row(s, [&](int64_t x_row, int64_t tap, int64_t y_row, int64_t from, int64_t to) {
      Sum<W> w = taps[tap];
      for (int64_t o = from; o < to; o++) out[y_row + o] += w * in[x_row + o * s.window.stride[1]];
    });
    write(y, out);
  });
}

inline void conv2d_grad_input(const Operand& dy, const Operand& weight, Window window, int64_t groups,
                              const Operand& dx) {
  ConvShape s(dx.shape, weight.shape, dy.shape, window, groups);
  with_compute(dy.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto flow = read<W>(dy), taps = read<W>(weight);
    std::vector<Sum<W>> out(static_cast<size_t>(dx.count()), 0);
    each_row(s, [&](int64_t x_row, int64_t tap, int64_t y_row, int64_t from, int64_t to) {
      Sum<W> w = taps[tap];
      for (int64_t o = from; o < to; o++) out[x_row + o * s.window.stride[1]] += w * flow[y_row + o];
    });
    write(dx, out);
  });
}

inline void conv2d_grad_weight(const Operand& dy, const Operand& x, Window window, int64_t groups,
                               const Operand& dweight) {
  ConvShape s(x.shape, dweight.shape, dy.shape, window, groups);
  with_compute(dy.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto flow = read<W>(dy), in = read<W>(x);
    std::vector<Sum<W>> out(static_cast<size_t>(dweight.count()), 0);
    each_row(s, [&](int64_t x_row, int64_t tap, int64_t y_row, int64_t from, int64_t to) {
      for (int64_t o = from; o < to; o++) {
        out[tap] += static_cast<Sum<W>>(flow[y_row + o]) * in[x_row + o * s.window.stride[1]];
      }
    });
    write(dweight, out);
  });
}

}  // namespace pg::reference
