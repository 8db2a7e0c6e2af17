// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/sort.hpp: lines in order. NaN counts as larger than all numbers; equal elements keep their
// order.
#pragma once

#include <algorithm>
#include <numeric>

#include "perigee/kernels/reference/operand.hpp"

namespace pg::reference {

template <class W>
bool comes_before(W a, W b) {
  if constexpr (is_float<W>)
    if (a != a || b != b) return a == a && b != b;
  return a < b;
}

// body(positions of a line in rising order (or falling), the line's elements, its number in row-major order).
template <class W, class Body>
void each_sorted(const Operand& x, int64_t axis, bool descending, Body&& body) {
  AxisSplit s(x.shape, axis);
  auto all = read<W>(x);
  if (all.empty()) return;  // of lines without elements there may be very many
  for (int64_t b = 0; b < s.before; b++) {
    for (int64_t a = 0; a < s.after; a++) {
      std::vector<W> line;
      for (int64_t i = 0; i < s.length; i++) line.push_back(all[static_cast<size_t>((b * s.length + i) * s.after + a)]);
      std::vector<int64_t> order(line.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
        return descending ? comes_before(line[j], line[i]) : comes_before(line[i], line[j]);
      });
      body(order, line, b, a);
    }
  }
}

// The first `count` of each sorted line; absent outputs are not written.
inline void sort(const Operand& x, int64_t axis, bool descending, int64_t count, const Operand& values,
                 const Operand& indices) {
  AxisSplit s(x.shape, axis);
  with_compute(x.dtype, [&](auto tag) {
    using W = decltype(tag);
    std::vector<W> out(static_cast<size_t>(s.before * count * s.after));
    std::vector<int64_t> at(out.size());
    each_sorted<W>(x, axis, descending, [&](const auto& order, const auto& line, int64_t b, int64_t a) {
      for (int64_t i = 0; i < count; i++) {
        size_t to = static_cast<size_t>((b * count + i) * s.after + a);
        at[to] = order[i];
        out[to] = line[static_cast<size_t>(order[i])];
      }
    });
    if (values) write(values, out);
    write(indices, at);
  });
}

// Of each line one element: choose(its positions in rising order, its elements) answers which.
template <class Choose>
void pick(const Operand& x, int64_t axis, const Operand& values, const Operand& indices, Choose&& choose) {
  with_compute(x.dtype, [&](auto tag) {
    using W = decltype(tag);
    std::vector<W> out;
    std::vector<int64_t> at;
    each_sorted<W>(x, axis, false, [&](const auto& order, const auto& line, int64_t, int64_t) {
      at.push_back(choose(order, line));
      out.push_back(line[static_cast<size_t>(at.back())]);
    });
    write(values, out);
    write(indices, at);
  });
}

template <class W>
int64_t median_of(const std::vector<int64_t>& order, const std::vector<W>& line, bool skip_nan) {
  auto numbers = std::count_if(line.begin(), line.end(), [](W v) { return v == v; });
  bool none = skip_nan ? numbers == 0 : numbers < static_cast<int64_t>(line.size());
  if (none) return order[static_cast<size_t>(numbers)];  // the first NaN
  return order[static_cast<size_t>((numbers - 1) / 2)];
}

template <class W>
int64_t mode_of(const std::vector<int64_t>& order, const std::vector<W>& line) {
  size_t best = 0, most = 0, first = 0;
  for (size_t i = 0; i < order.size(); i++) {
    if (comes_before(line[order[first]], line[order[i]])) first = i;
    if (i - first + 1 > most) most = i - first + 1, best = i;
  }
  return order[best];
}

// Returns how many kinds there are; first and counts have room for all rows.
inline int64_t unique_rows(const Operand& x, bool consecutive, Operand first, const Operand& inverse, Operand counts) {
  int64_t rows = x.shape[0], width = x.rank() == 2 ? x.shape[1] : 1;
  std::vector<int64_t> order(static_cast<size_t>(rows)), starts, kind(order.size()), sizes;
  std::iota(order.begin(), order.end(), 0);
  with_compute(x.dtype, [&](auto tag) {
    auto all = read<decltype(tag)>(x);
    auto row = [&](int64_t i) { return all.begin() + i * width; };
    auto before = [&](int64_t i, int64_t j) {
      return std::lexicographical_compare(row(i), row(i + 1), row(j), row(j + 1), comes_before<decltype(tag)>);
    };
    if (!consecutive) std::stable_sort(order.begin(), order.end(), before);
    for (size_t i = 0; i < order.size(); i++) {
      if (i == 0 || !std::equal(row(order[i]), row(order[i] + 1), row(order[i - 1]))) {
        starts.push_back(order[i]);
        sizes.push_back(0);
      }
      sizes.back()++;
      kind[static_cast<size_t>(order[i])] = static_cast<int64_t>(starts.size()) - 1;
    }
  });
  first.shape[0] = counts.shape[0] = static_cast<int64_t>(starts.size());
  write(first, starts);
  write(inverse, kind);
  write(counts, sizes);
  return static_cast<int64_t>(starts.size());
}

inline void searchsorted(const Operand& sorted, const Operand& values, bool right, const Operand& y) {
  with_compute(sorted.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto rows = read<W>(sorted);
    auto wanted = read<W>(values);
    int64_t length = sorted.shape.back();
    int64_t row = sorted.rank() == 1 ? std::max<int64_t>(values.count(), 1) : values.shape.back();
    std::vector<int64_t> out;
    for (size_t i = 0; i < wanted.size(); i++) {
      auto begin = rows.begin() + static_cast<int64_t>(i) / row * length, end = begin + length;
      auto at = right ? std::upper_bound(begin, end, wanted[i], comes_before<W>)
                      : std::lower_bound(begin, end, wanted[i], comes_before<W>);
      out.push_back(at - begin);
    }
    write(y, out);
  });
}

}  // namespace pg::reference
