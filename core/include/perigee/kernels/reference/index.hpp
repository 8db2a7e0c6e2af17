// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/index.hpp: reading and writing by index. Every index is checked before anything is written.
// Negative indices are the front end's business: here they are out of range.
#pragma once

#include <algorithm>

#include "perigee/kernels/reference/operand.hpp"

namespace pg::reference {

// y[b, i, a] = x[b, index[i], a] along an axis. embedding is this with axis 0 of the weight.
inline void index_select(const Operand& x, const Operand& index, int64_t axis, const Operand& y, const char* op,
                         int64_t shown = 0) {
  AxisSplit s(x.shape, axis);
  auto places = read_index(index, s.length, op, index_name(op, axis, shown));
  int64_t n = static_cast<int64_t>(places.size());
  if (y.count() == 0) return;
  with_compute(x.dtype, [&](auto tag) {
    auto in = read<decltype(tag)>(x);
    std::vector<decltype(tag)> out;
    for (int64_t b = 0; b < s.before; b++) {
      for (int64_t i = 0; i < n; i++) {
        for (int64_t a = 0; a < s.after; a++) out.push_back(in[(b * s.length + places[i]) * s.after + a]);
      }
    }
    write(y, out);
  });
}

// dx[b, index[i], a] += dy[b, i, a]; `skip` is an index that takes part in nothing (embedding's padding), or -1.
inline void index_select_grad(const Operand& dy, const Operand& index, int64_t axis, int64_t skip, const Operand& dx,
                              const char* op) {
  AxisSplit s(dx.shape, axis);
  auto places = read_index(index, s.length, op, index_name(op, axis));
  int64_t n = static_cast<int64_t>(places.size());
  if (dx.count() == 0) return;
  with_compute(dy.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto flow = read<W>(dy);
    std::vector<Sum<W>> out(static_cast<size_t>(dx.count()), 0);
    for (int64_t b = 0; b < s.before; b++) {
      for (int64_t i = 0; i < n; i++) {
        if (places[i] == skip) continue;
        for (int64_t a = 0; a < s.after; a++) {
          auto& to = out[(b * s.length + places[i]) * s.after + a];
          to = wrapping_add<Sum<W>>(to, flow[(b * n + i) * s.after + a]);
        }
      }
    }
    write(dx, out);
  });
}

// Calls body(position in the index, position in x) for gather along an axis: other axes of the index may be shorter.
template <class Body>
void each_gathered(const Dims& x, const Operand& index, int64_t axis, const char* op, Body&& body) {
  int64_t limit = x.empty() ? 1 : x[axis];
  auto places = read_index(index, limit, op, index_name(op, axis));
  Dims x_stride = dense(x), own = dense(index.shape);
  for (int64_t i = 0; i < index.count(); i++) {
    int64_t at = 0;
    for (size_t d = 0; d < x.size(); d++) {
      at += x_stride[d] * (static_cast<int64_t>(d) == axis ? places[i] : i / own[d] % index.shape[d]);
    }
    body(i, at);
  }
}

inline void gather(const Operand& x, const Operand& index, int64_t axis, const Operand& y) {
  with_compute(x.dtype, [&](auto tag) {
    auto in = read<decltype(tag)>(x);
    std::vector<decltype(tag)> out(static_cast<size_t>(y.count()));
    each_gathered(x.shape, index, axis, "gather", [&](int64_t i, int64_t at) { out[i] = in[at]; });
    write(y, out);
  });
}

inline void gather_grad(const Operand& dy, const Operand& index, int64_t axis, const Operand& dx) {
  with_compute(dy.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto flow = read<W>(dy);
    std::vector<Sum<W>> out(static_cast<size_t>(dx.count()), 0);
    each_gathered(dx.shape, index, axis, "gather_grad",
                  [&](int64_t i, int64_t at) { out[at] = wrapping_add<Sum<W>>(out[at], flow[i]); });
    write(dx, out);
  });
}

// Positions of elements that are not zero, one a row, in row-major order. y has room for all; returns how many.
inline int64_t nonzero(const Operand& x, Operand y) {
  std::vector<int64_t> rows;
  int64_t count = 0, rank = x.rank();
  Dims stride = dense(x.shape);
  with_compute(x.dtype, [&](auto tag) {
    auto in = read<decltype(tag)>(x);
    for (int64_t i = 0; i < x.count(); i++) {
      if (in[i] == 0) continue;
      count++;
      for (int64_t d = 0; d < rank; d++) rows.push_back(i / stride[d] % x.shape[d]);
    }
  });
  y.shape[0] = count;
  write(y, rows);
  return count;
}

// x where the mask holds, in row-major order of their common shape; returns how many.
inline int64_t masked_select(const Operand& x, const Operand& mask, const Dims& shape, Operand y) {
  auto take = read<int64_t>(broadcast(mask, shape));
  int64_t count = 0;
  with_compute(x.dtype, [&](auto tag) {
    auto in = read<decltype(tag)>(broadcast(x, shape));
    std::vector<decltype(tag)> out;
    for (size_t i = 0; i < in.size(); i++) {
      if (take[i]) out.push_back(in[i]);
    }
    count = y.shape[0] = static_cast<int64_t>(out.size());
    write(y, out);
  });
  return count;
}

// The gradient of masked_select for an x of the common shape.
inline void masked_select_grad(const Operand& dy, const Operand& mask, const Operand& dx) {
  auto take = read<int64_t>(broadcast(mask, dx.shape));
  with_compute(dx.dtype, [&](auto tag) {
    auto flow = read<decltype(tag)>(dy);
    std::vector<decltype(tag)> out(take.size(), 0);
    size_t next = 0;
    for (size_t i = 0; i < take.size(); i++) {
      if (take[i]) {
        if (next < flow.size()) out[i] = flow[next];
        next++;
      }
    }
    if (next != flow.size())
      fail_argument(format("masked_select_grad: the mask selects %zu elements, dy has %zu", next, flow.size()));
    write(dx, out);
  });
}

inline void one_hot(const Operand& index, int64_t classes, const Operand& y) {
  auto places = read_index(index, classes, "one_hot", {"class", 0});
  std::vector<int64_t> out(static_cast<size_t>(y.count()), 0);
  for (size_t i = 0; i < places.size(); i++) out[i * static_cast<size_t>(classes) + static_cast<size_t>(places[i])] = 1;
  write(y, out);
}

// Calls body(i, part of `whole` that belongs to piece i) for the pieces that make it up along an axis.
template <class Body>
void each_piece(const Operand& whole, const std::vector<Operand>& pieces, int64_t axis, Body&& body) {
  int64_t start = 0;
  for (size_t i = 0; i < pieces.size(); i++) {
    Operand part = whole;
    part.shape = pieces[i].shape;
    if (part.rank() == whole.rank() && part.count() > 0) {
      part.data = static_cast<char*>(whole.data) + start * whole.stride[axis] * dtype_bytes(whole.dtype);
      body(i, part);
      start += part.shape[axis];
    }
  }
}

inline void cat(const std::vector<Operand>& xs, int64_t axis, const Operand& y) {
  with_compute(y.dtype, [&](auto tag) {
    each_piece(y, xs, axis, [&](size_t i, const Operand& part) { write(part, read<decltype(tag)>(xs[i])); });
  });
}

// cat of the xs with an axis of size 1 inserted.
inline void stack(std::vector<Operand> xs, int64_t axis, const Operand& y) {
  for (Operand& x : xs) {
    x.shape.insert(x.shape.begin() + axis, 1);
    x.stride.insert(x.stride.begin() + axis, 0);
  }
  cat(xs, axis, y);
}

// dxs: the pieces of dy.
inline void cat_grad(const Operand& dy, int64_t axis, const std::vector<Operand>& dxs) {
  with_compute(dy.dtype, [&](auto tag) {
    each_piece(dy, dxs, axis, [&](size_t i, const Operand& part) { write(dxs[i], read<decltype(tag)>(part)); });
  });
}

// Bits of `axes`: those whose positions come in reverse order.
inline void flip(Operand x, uint32_t axes, const Operand& y) {
  if (y.count() == 0) return;
  for (size_t d = 0; d < x.shape.size(); d++) {
    if ((axes >> d & 1u) == 0) continue;
    x.data = static_cast<char*>(x.data) + (x.shape[d] - 1) * x.stride[d] * dtype_bytes(x.dtype);
    x.stride[d] = -x.stride[d];
  }
  with_compute(x.dtype, [&](auto tag) { write(y, read<decltype(tag)>(x)); });
}

// Position i of an axis goes to i + shift, round the end.
inline void roll(const Operand& x, const Dims& shifts, const Operand& y) {
  with_compute(x.dtype, [&](auto tag) {
    auto in = read<decltype(tag)>(x), out = in;
    Dims own = dense(x.shape);
    for (int64_t i = 0; i < x.count(); i++) {
      int64_t to = 0;
      for (size_t d = 0; d < x.shape.size(); d++) {
        int64_t n = x.shape[d], shift = d < shifts.size() ? shifts[d] % n : 0;
        to += (i / own[d] % n + shift + n) % n * own[d];
      }
      out[to] = in[i];
    }
    write(y, out);
  });
}

// x where column minus row is at most (lower) or at least `diagonal`, else zeros.
inline void triangle(const Operand& x, int64_t diagonal, bool lower, const Operand& y) {
  if (y.count() == 0) return;
  int64_t height = x.shape[x.shape.size() - 2], width = x.shape.back();
  with_compute(x.dtype, [&](auto tag) {
    auto values = read<decltype(tag)>(x);
    for (int64_t i = 0; i < x.count(); i++) {
      int64_t apart = i % width - i / width % height;
      if (lower ? apart > diagonal : apart < diagonal) values[i] = 0;
    }
    write(y, values);
  });
}

// The part of x that slice(starts, stops, steps, drop) shows, given its shape. Clamped like Python's ranges.
inline Operand slice_part(const Operand& x, const Dims& starts, const Dims& steps, const Dims& drop,
                          const Dims& shape) {
  Operand part = x;
  part.shape = shape;
  part.stride.clear();
  int64_t at = 0;
  for (size_t d = 0; d < x.shape.size(); d++) {
    int64_t start = d < starts.size() ? starts[d] : 0, step = d < steps.size() ? steps[d] : 1;
    if (start < 0) start = std::max<int64_t>(start + x.shape[d], 0);
    at += std::min(start, x.shape[d]) * x.stride[d];
    if (d >= drop.size() || drop[d] == 0) part.stride.push_back(step * x.stride[d]);
  }
  if (part.count() > 0) part.data = static_cast<char*>(x.data) + at * dtype_bytes(x.dtype);
  return part;
}

// y is x (zeros where x is absent) with dy written into the part that the slice shows.
inline void slice_scatter(const Operand& x, const Operand& dy, const Dims& starts, const Dims& steps, const Dims& drop,
                          const Operand& y) {
  with_compute(y.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto values = x ? read<W>(x) : std::vector<W>(static_cast<size_t>(y.count()), 0);
    auto flow = read<W>(dy);
    write(y, values);
    write(slice_part(y, starts, steps, drop, dy.shape), flow);
  });
}

}  // namespace pg::reference
