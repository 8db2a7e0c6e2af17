// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/pool.hpp: pooling over the one to three last axes of [N, C, ...].
#pragma once

#include <limits>

#include "perigee/kernels/reference/window.hpp"
#include "perigee/kernels/resample.hpp"

namespace pg::reference {

struct Planes {  // of an input and an output of pooling; of three axes a plane is a block
  int64_t count;
  Extents in, out;
  Planes(const Dims& x, const Dims& y) : count(x[0] * x[1]), in(x), out(y) {}
  int64_t size() const { return in.count(); }
  int64_t out_size() const { return out.count(); }
};

// The window of one output of adaptive pooling: its share of the elements.
inline Window adaptive_window(const Planes& p, const int64_t (&o)[3]) {
  Window window;
  for (int axis = 0; axis < 3; axis++) {
    int64_t size = p.in.size[axis], n = p.out.size[axis], begin = share_begin(o[axis], size, n);
    window.kernel[axis] = share_end(o[axis], size, n) - begin;
    window.stride[axis] = 0, window.padding[axis] = -begin;
  }
  return window;
}

template <class W>
W lowest_integer(uint32_t dtype) {
  W least = 0;
  with_storage(dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T>) least = static_cast<W>(std::numeric_limits<T>::lowest());
  });
  return least;
}

// The first of equals wins; NaN wins over numbers, the last of several over the others (as in PyTorch). `indices`:
// row-major within the plane, -1 for a window of nothing but padding, which gives the lowest number.
// window_at(position) is the window of an output.
template <class WindowAt>
void max_pool(const Operand& x, WindowAt&& window_at, const Operand& y, const Operand& indices) {
  Planes p(x.shape, y.shape);
  with_compute(x.dtype, [&](auto tag) {
    using W = decltype(tag);
    // What narrows to the lowest number of x's dtype.
    const W least = is_float<W> ? -std::numeric_limits<W>::infinity() : lowest_integer<W>(x.dtype);
    auto in = read<W>(x);
    std::vector<W> out;
    std::vector<int64_t> places;
    for (int64_t at = 0; at < p.count * p.out_size(); at++) {
      const W* plane = in.data() + at / p.out_size() * p.size();
      int64_t best = -1, o[3];
      p.out.split(at % p.out_size(), o);
      each_tap(window_at(p, o), o, p.in, [&](int64_t place, int64_t) {
        if (best < 0 || plane[place] > plane[best] || plane[place] != plane[place]) best = place;
      });
      out.push_back(best < 0 ? least : plane[best]);
      places.push_back(best);
    }
    write(y, out);
    if (indices) write(indices, places);
  });
}

// Reads the indices of planes [N, C, ...]; throws where one lies outside its plane of `size` elements and is not -1.
inline std::vector<int64_t> plane_indices(const Operand& indices, int64_t size, const char* op) {
  auto places = read<int64_t>(indices);
  for (size_t i = 0; i < places.size(); i++) {
    if (places[i] < -1 || places[i] >= size) fail_argument(op + (": " + out_of_plane(places[i], size)));
  }
  return places;
}

inline void max_pool_grad(const char* op, const Operand& dy, const Operand& indices, const Operand& dx) {
  Planes p(dx.shape, dy.shape);
  auto places = plane_indices(indices, p.size(), op);
  with_compute(dy.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto flow = read<W>(dy);
    std::vector<Sum<W>> out(static_cast<size_t>(dx.count()), 0);
    for (int64_t i = 0; i < dy.count(); i++) {
      if (places[i] < 0) continue;
      auto& to = out[i / p.out_size() * p.size() + places[i]];
      to = wrapping_add<Sum<W>>(to, flow[i]);
    }
    write(dx, out);
  });
}

inline void max_pool_gather(const char* op, const Operand& x, const Operand& indices, const Operand& y) {
  Planes p(x.shape, y.shape);
  auto places = plane_indices(indices, p.size(), op);
  with_compute(x.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto in = read<W>(x);
    std::vector<W> out;
    for (int64_t i = 0; i < y.count(); i++)
      out.push_back(places[i] < 0 ? W(0) : in[i / p.out_size() * p.size() + places[i]]);
    write(y, out);
  });
}

// What a window's sum is divided by.
struct Divisor {
  bool include_padding;  // all its elements inside the padded input, else only those inside the input
  int64_t instead;       // a number in place of either; 0: none

  double operator()(const Window& window, const Extents& in, const int64_t (&o)[3]) const {
    if (instead != 0) return static_cast<double>(instead);
    double parts = 1;
    for (int axis = 0; axis < 3; axis++) {
      int64_t from = window.at(axis, o[axis], 0);
      int64_t to = std::min(from + window.kernel[axis], in.size[axis] + window.padding[axis]);
      if (!include_padding) from = std::max<int64_t>(from, 0), to = std::min(to, in.size[axis]);
      parts *= static_cast<double>(to - from);
    }
    return parts;
  }
};

// Calls body(x position, y position, divisor) for every element under every window.
template <class Body>
void each_average(const Planes& p, const Window& window, Divisor divisor, Body&& body) {
  for (int64_t at = 0; at < p.count * p.out_size(); at++) {
    int64_t o[3];
    p.out.split(at % p.out_size(), o);
    double parts = divisor(window, p.in, o);
    int64_t base = at / p.out_size() * p.size();
    each_tap(window, o, p.in, [&](int64_t place, int64_t) { body(base + place, at, parts); });
  }
}

inline void avg_pool(const Operand& x, const Window& window, Divisor divisor, const Operand& y) {
  Planes p(x.shape, y.shape);
  std::vector<double> out(static_cast<size_t>(y.count()), 0), in = read<double>(x);
  each_average(p, window, divisor, [&](int64_t from, int64_t to, double parts) { out[to] += in[from] / parts; });
  write(y, out);
}

inline void avg_pool_grad(const Operand& dy, const Window& window, Divisor divisor, const Operand& dx) {
  Planes p(dx.shape, dy.shape);
  std::vector<double> out(static_cast<size_t>(dx.count()), 0), flow = read<double>(dy);
  each_average(p, window, divisor, [&](int64_t to, int64_t from, double parts) { out[to] += flow[from] / parts; });
  write(dx, out);
}

}  // namespace pg::reference
