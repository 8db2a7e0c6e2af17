// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/conv.hpp: convolution (cross-correlation) over one to three axes, and its gradients.
#pragma once

#include "perigee/kernels/reference/window.hpp"

namespace pg::reference {

struct ConvShape {
  int64_t batch, in_channels, out_channels, groups;
  Extents in, out;
  Window window;
  ConvShape(const Dims& x, const Dims& weight, const Dims& y, Window geometry, int64_t groups)
      : batch(x[0]), in_channels(x[1]), out_channels(y[1]), groups(groups), in(x), out(y), window(geometry) {
    std::copy_n(Extents(weight).size, 3, window.kernel);
  }
};

// Calls body(x row, weight, y row, from, to) for every pairing of one weight with one row of outputs: outputs
// [from, to) of the row see the input at position `x row + o stride`. The rest of the row sees padding.
template <class Body>
void each_row(const ConvShape& s, Body&& body) {
  const Window& win = s.window;
  const int64_t *in = s.in.size, *out = s.out.size;
  int64_t in_per_group = s.in_channels / s.groups, out_per_group = s.out_channels / s.groups;
  int64_t taps = win.kernel[0] * win.kernel[1] * win.kernel[2], step = win.stride[2];
  for (int64_t pair = 0; pair < s.batch * s.out_channels * in_per_group; pair++) {
    int64_t i = pair % in_per_group, o = pair / in_per_group % s.out_channels, n = pair / in_per_group / s.out_channels;
    int64_t c = o / out_per_group * in_per_group + i;
    for (int64_t tap = 0; tap < taps; tap++) {
      int64_t kd = tap / win.kernel[2] / win.kernel[1], kh = tap / win.kernel[2] % win.kernel[1];
      int64_t first = win.at(2, 0, tap % win.kernel[2]);  // where output 0 looks
      int64_t from = first >= 0 ? 0 : (-first + step - 1) / step;
      int64_t to = std::min(out[2], in[2] <= first ? 0 : (in[2] - 1 - first) / step + 1);
      for (int64_t row = 0; row < out[0] * out[1]; row++) {
        int64_t d = win.at(0, row / out[1], kd), h = win.at(1, row % out[1], kh);
        if (d < 0 || d >= in[0] || h < 0 || h >= in[1]) continue;
        int64_t x_row = (((n * s.in_channels + c) * in[0] + d) * in[1] + h) * in[2] + first;
        int64_t y_row = ((n * s.out_channels + o) * out[0] * out[1] + row) * out[2];
        body(x_row, (o * in_per_group + i) * taps + tap, y_row, from, to);
      }
    }
  }
}

template <class W>
std::vector<Sum<W>> bias_everywhere(const Operand& bias, const Dims& shape) {
  std::vector<Sum<W>> out(static_cast<size_t>(product(shape)), 0);
  if (!bias) return out;
  auto start = read<W>(bias);
  int64_t plane = Extents(shape).count();
  for (size_t i = 0; i < out.size(); i++) out[i] = start[static_cast<int64_t>(i) / plane % shape[1]];
  return out;
}

inline void conv(const Operand& x, const Operand& weight, const Operand& bias, Window window, int64_t groups,
                 const Operand& y) {
  ConvShape s(x.shape, weight.shape, y.shape, window, groups);
  with_compute(x.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto in = read<W>(x), taps = read<W>(weight);
    auto out = bias_everywhere<W>(bias, y.shape);
    each_row(s, [&](int64_t x_row, int64_t tap, int64_t y_row, int64_t from, int64_t to) {
      Sum<W> w = taps[tap];
      for (int64_t o = from; o < to; o++) out[y_row + o] += w * in[x_row + o * s.window.stride[2]];
    });
    write(y, out);
  });
}

// With a bias it is the transposed convolution, whose result is dx.
inline void conv_grad_input(const Operand& dy, const Operand& weight, const Operand& bias, Window window,
                            int64_t groups, const Operand& dx) {
  ConvShape s(dx.shape, weight.shape, dy.shape, window, groups);
  with_compute(dy.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto flow = read<W>(dy), taps = read<W>(weight);
    auto out = bias_everywhere<W>(bias, dx.shape);
    each_row(s, [&](int64_t x_row, int64_t tap, int64_t y_row, int64_t from, int64_t to) {
      Sum<W> w = taps[tap];
      for (int64_t o = from; o < to; o++) out[x_row + o * s.window.stride[2]] += w * flow[y_row + o];
    });
    write(dx, out);
  });
}

inline void conv_grad_weight(const Operand& dy, const Operand& x, Window window, int64_t groups,
                             const Operand& dweight) {
  ConvShape s(x.shape, dweight.shape, dy.shape, window, groups);
  with_compute(dy.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto flow = read<W>(dy), in = read<W>(x);
    std::vector<Sum<W>> out(static_cast<size_t>(dweight.count()), 0);
    each_row(s, [&](int64_t x_row, int64_t tap, int64_t y_row, int64_t from, int64_t to) {
      for (int64_t o = from; o < to; o++) {
        out[tap] += static_cast<Sum<W>>(flow[y_row + o]) * in[x_row + o * s.window.stride[2]];
      }
    });
    write(dweight, out);
  });
}

}  // namespace pg::reference
