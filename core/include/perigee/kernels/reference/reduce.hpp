// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/reduce.hpp: reductions over a set of axes, and running sums.
#pragma once

#include <cmath>
#include <limits>

#include "perigee/kernels/reference/operand.hpp"

namespace pg::reference {

// Calls body(group) for each result in row-major order; group holds the elements that it is reduced from, in order.
// Bit i of `axes`: axis i is reduced.
template <class W, class Body>
void each_group(const Operand& x, uint32_t axes, Body&& body) {
  Dims kept, kept_stride, gone, gone_stride;
  Dims stride = dense(x.shape);
  for (size_t i = 0; i < x.shape.size(); i++) {
    bool reduced = axes >> i & 1;
    (reduced ? gone : kept).push_back(x.shape[i]);
    (reduced ? gone_stride : kept_stride).push_back(stride[i]);
  }
  std::vector<W> values = read<W>(x), group;
  each_offset(kept, kept_stride, [&](int64_t base) {
    group.clear();
    each_offset(gone, gone_stride, [&](int64_t at) { group.push_back(values[base + at]); });
    body(group);
  });
}

// y = f(group), computed in W and returned in any number type.
template <class W, class F>
void reduce(const Operand& x, uint32_t axes, const Operand& y, F f) {
  std::vector<decltype(f(std::vector<W>()))> out;
  each_group<W>(x, axes, [&](const std::vector<W>& group) { out.push_back(f(group)); });
  write(y, out);
}

struct SumOf {
  template <class W>
  Sum<W> operator()(const std::vector<W>& group) const {
    Sum<W> sum = 0;
    for (W x : group) sum = wrapping_add<Sum<W>>(sum, x);
    return sum;
  }
};

struct ProductOf {
  template <class W>
  Sum<W> operator()(const std::vector<W>& group) const {
    Sum<W> product = 1;
    for (W x : group) product = wrapping_multiply<Sum<W>>(product, x);
    return product;
  }
};

// Without NaN.
struct NanSumOf {
  template <class W>
  Sum<W> operator()(const std::vector<W>& group) const {
    Sum<W> sum = 0;
    for (W x : group) sum = wrapping_add<Sum<W>>(sum, x == x ? x : W(0));
    return sum;
  }
};

// (sum of |x|^p)^(1/p)
struct NormOf {
  double p;
  template <class W>
  double operator()(const std::vector<W>& group) const {
    double sum = 0, most = 0, least = std::numeric_limits<double>::infinity();
    for (W x : group) {
      double size = std::fabs(static_cast<double>(x));
      most = size > most || size != size ? size : most;
      least = size < least || size != size ? size : least;
      sum += p == 0          ? (size != 0 ? 1 : 0)
             : p == 1        ? size
             : p == 2        ? size * size
             : std::isinf(p) ? 0
                             : std::pow(size, p);
      if (std::isinf(p) && (most != most || least != least)) return NAN;
    }
    if (std::isinf(p)) return p > 0 ? most : least;
    return p == 0 || p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
  }
};

struct MeanOf {
  template <class W>
  double operator()(const std::vector<W>& group) const {
    return static_cast<double>(SumOf()(group)) / static_cast<double>(group.size());
  }
};

// Whether x goes before the best so far: larger (sign 1) or smaller (sign -1); NaN beats all. The first of equals
// stays.
template <class W>
bool better(W x, W best, int sign) {
  if (best != best) return false;
  return x != x || (sign > 0 ? x > best : x < best);
}

struct ExtremeOf {
  int sign;
  template <class W>
  W operator()(const std::vector<W>& group) const {
    if (group.empty()) fail_argument("an empty tensor has no largest or smallest element");
    W best = group[0];
    for (W x : group) {
      if (better(x, best, sign)) best = x;
    }
    return best;
  }
};

struct PlaceOf {  // argmax, argmin
  int sign;
  template <class W>
  int64_t operator()(const std::vector<W>& group) const {
    if (group.empty()) fail_argument("an empty tensor has no largest or smallest element");
    size_t best = 0;
    for (size_t i = 1; i < group.size(); i++) {
      if (better(group[i], group[best], sign)) best = i;
    }
    return static_cast<int64_t>(best);
  }
};

struct VarianceOf {
  int64_t correction;
  bool root;  // the standard deviation
  template <class W>
  double operator()(const std::vector<W>& group) const {
    double mean = MeanOf()(group), sum = 0;
    for (W x : group) sum += (static_cast<double>(x) - mean) * (static_cast<double>(x) - mean);
    double freedom = std::max(0.0, static_cast<double>(group.size()) - static_cast<double>(correction));
    double variance = sum / freedom;
    return root ? std::sqrt(variance) : variance;
  }
};

struct LogSumExpOf {
  template <class W>
  double operator()(const std::vector<W>& group) const {
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (W x : group) most = x > most || x != x ? static_cast<double>(x) : most;
    if (!std::isfinite(most)) return most;
    for (W x : group) sum += std::exp(static_cast<double>(x) - most);
    return most + std::log(sum);
  }
};

struct AnyOf {
  template <class W>
  int64_t operator()(const std::vector<W>& group) const {
    for (W x : group) {
      if (x != W(0)) return 1;
    }
    return 0;
  }
};

struct AllOf {
  template <class W>
  int64_t operator()(const std::vector<W>& group) const {
    for (W x : group) {
      if (x == W(0)) return 0;
    }
    return 1;
  }
};

// Running sums or products along an axis.
template <class W>
void cumulate(const Operand& x, int64_t axis, bool products, const Operand& y) {
  std::vector<Sum<W>> values = read<Sum<W>>(x);
  if (values.empty()) return;  // of lines without elements there may be very many
  AxisSplit s(x.shape, axis);
  for (int64_t b = 0; b < s.before; b++) {
    for (int64_t a = 0; a < s.after; a++) {
      for (int64_t i = 1; i < s.length; i++) {
        Sum<W>* at = &values[(b * s.length + i) * s.after + a];
        *at = products ? wrapping_multiply(at[-s.after], at[0]) : wrapping_add(at[-s.after], at[0]);
      }
    }
  }
  write(y, values);
}

// The extreme so far (sign 1: the largest) and its position, the last of equal ones.
template <class W>
void cumulate_extreme(const Operand& x, int64_t axis, int sign, const Operand& y, const Operand& index) {
  std::vector<W> values = read<W>(x);
  if (values.empty()) return;
  std::vector<int64_t> places(values.size());
  AxisSplit s(x.shape, axis);
  for (int64_t line = 0; line < s.before * s.after; line++) {
    int64_t first = line / s.after * s.length * s.after + line % s.after;
    for (int64_t i = 1; i < s.length; i++) {
      size_t at = static_cast<size_t>(first + i * s.after), before = at - static_cast<size_t>(s.after);
      bool stays = better(values[before], values[at], sign) && !(values[at] != values[at]);
      places[at] = stays ? places[before] : i;
      values[at] = stays ? values[before] : values[at];
    }
  }
  write(y, values);
  write(index, places);
}

// Logarithms of running sums of exponentials, from the front or from the end.
inline void logcumsumexp(const Operand& x, int64_t axis, bool reverse, const Operand& y) {
  std::vector<double> values = read<double>(x);
  if (values.empty()) return;
  AxisSplit s(x.shape, axis);
  for (int64_t line = 0; line < s.before * s.after; line++) {
    int64_t first = line / s.after * s.length * s.after + line % s.after;
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t i = 0; i < s.length; i++) {
      double& value = values[static_cast<size_t>(first + (reverse ? s.length - 1 - i : i) * s.after)];
      double next = value > top || value != value ? value : top;
      bool finite = std::isfinite(next);
      sum = finite ? sum * std::exp(top - next) + std::exp(value - next) : 0;
      top = next;
      value = finite ? top + std::log(sum) : top;
    }
  }
  write(y, values);
}

// dy summed to the shape of y, of which it is a broadcast.
inline void sum_like(const Operand& dy, const Operand& y) {
  Dims shape(dy.shape.size() - y.shape.size(), 1);  // y's, with the leading ones spelled out
  shape.insert(shape.end(), y.shape.begin(), y.shape.end());
  uint32_t axes = 0;
  for (size_t i = 0; i < shape.size(); i++) axes |= (shape[i] != dy.shape[i] ? 1u : 0u) << i;
  with_compute(dy.dtype, [&](auto tag) { reduce<decltype(tag)>(dy, axes, y, SumOf()); });
}

inline void all_finite(const std::vector<Operand>& xs, const Operand& y) {
  int64_t finite = 1;
  for (const Operand& x : xs) {
    for (double value : read<double>(x)) finite &= std::isfinite(value) ? 1 : 0;
  }
  write(y, std::vector<int64_t>{finite});
}

}  // namespace pg::reference
