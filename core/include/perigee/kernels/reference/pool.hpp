// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/pool.hpp: pooling over the last two axes of [N, C, H, W].
#pragma once

#include "perigee/kernels/reference/window.hpp"

namespace pg::reference {

struct Planes {  // of an input and an output of pooling
  int64_t count, height, width, out_height, out_width;
  Planes(const Dims& x, const Dims& y)
      : count(x[0] * x[1]), height(x[2]), width(x[3]), out_height(y[2]), out_width(y[3]) {}
  int64_t size() const { return height * width; }
  int64_t out_size() const { return out_height * out_width; }
};

// The first of equals wins; NaN wins over numbers, the last of several over the others (as in PyTorch). `indices`:
// h * width + w within the plane.
inline void max_pool2d(const Operand& x, const Window& window, const Operand& y, const Operand& indices) {
  Planes p(x.shape, y.shape);
  with_compute(x.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto in = read<W>(x);
    std::vector<W> out;
    std::vector<int64_t> places;
    for (int64_t at = 0; at < p.count * p.out_size(); at++) {
      const W* plane = in.data() + at / p.out_size() * p.size();
      int64_t best = -1;
      each_tap(window, at / p.out_width % p.out_height, at % p.out_width, p.height, p.width,
               [&](int64_t h, int64_t w, int64_t, int64_t) {
                 W value = plane[h * p.width + w];
                 if (best < 0 || value > plane[best] || value != value) best = h * p.width + w;
               });
      if (best < 0) fail_argument("max_pool2d: a window holds nothing but padding");
      out.push_back(plane[best]);
      places.push_back(best);
    }
    write(y, out);
    if (indices) write(indices, places);
  });
}

// Reads the indices of planes [N, C, ...]; throws where one lies outside its plane of `size` elements.
inline std::vector<int64_t> plane_indices(const Operand& indices, int64_t size, const char* op) {
  auto places = read<int64_t>(indices);
  for (size_t i = 0; i < places.size(); i++) {
    if (places[i] < 0 || places[i] >= size) {
      fail_argument(format("%s: index %lld at %s; the plane has %lld elements", op, static_cast<long long>(places[i]),
                           position(indices.shape, static_cast<int64_t>(i)).c_str(), static_cast<long long>(size)));
    }
  }
  return places;
}

inline void max_pool2d_grad(const Operand& dy, const Operand& indices, const Operand& dx) {
  Planes p(dx.shape, dy.shape);
  auto places = plane_indices(indices, p.size(), "max_pool2d_grad");
  with_compute(dy.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto flow = read<W>(dy);
    std::vector<Sum<W>> out(static_cast<size_t>(dx.count()), 0);
    for (int64_t i = 0; i < dy.count(); i++) out[i / p.out_size() * p.size() + places[i]] += flow[i];
    write(dx, out);
  });
}

inline void max_pool2d_gather(const Operand& x, const Operand& indices, const Operand& y) {
  Planes p(x.shape, y.shape);
  auto places = plane_indices(indices, p.size(), "max_pool2d_gather");
  with_compute(x.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto in = read<W>(x);
    std::vector<W> out;
    for (int64_t i = 0; i < y.count(); i++) out.push_back(in[i / p.out_size() * p.size() + places[i]]);
    write(y, out);
  });
}

// What a window's sum is divided by: its elements inside the input, or inside the padded input.
inline int64_t divisor(const Window& window, const Planes& p, int64_t oh, int64_t ow, bool include_padding) {
  int64_t extent[2], limit[2] = {p.height, p.width}, out[2] = {oh, ow};
  for (int axis = 0; axis < 2; axis++) {
    int64_t from = out[axis] * window.stride[axis] - window.padding[axis];
    int64_t to = std::min(from + window.kernel[axis], limit[axis] + window.padding[axis]);
    if (!include_padding) from = std::max<int64_t>(from, 0), to = std::min(to, limit[axis]);
    extent[axis] = to - from;
  }
  return extent[0] * extent[1];
}

// Calls body(x position, y position, divisor) for every element under every window.
template <class Body>
void each_average(const Planes& p, const Window& window, bool include_padding, Body&& body) {
  for (int64_t at = 0; at < p.count * p.out_size(); at++) {
    int64_t oh = at / p.out_width % p.out_height, ow = at % p.out_width;
    int64_t parts = divisor(window, p, oh, ow, include_padding), base = at / p.out_size() * p.size();
    each_tap(window, oh, ow, p.height, p.width,
             [&](int64_t h, int64_t w, int64_t, int64_t) { body(base + h * p.width + w, at, parts); });
  }
}

inline void avg_pool2d(const Operand& x, const Window& window, bool include_padding, const Operand& y) {
  Planes p(x.shape, y.shape);
  std::vector<double> out(static_cast<size_t>(y.count()), 0), in = read<double>(x);
  each_average(p, window, include_padding,
               [&](int64_t from, int64_t to, int64_t parts) { out[to] += in[from] / static_cast<double>(parts); });
  write(y, out);
}

inline void avg_pool2d_grad(const Operand& dy, const Window& window, bool include_padding, const Operand& dx) {
  Planes p(dx.shape, dy.shape);
  std::vector<double> out(static_cast<size_t>(dx.count()), 0), flow = read<double>(dy);
  each_average(p, window, include_padding,
               [&](int64_t to, int64_t from, int64_t parts) { out[to] += flow[from] / static_cast<double>(parts); });
  write(dx, out);
}

}  // namespace pg::reference
