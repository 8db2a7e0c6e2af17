// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/elementwise.hpp: element by element over broadcast operands; the arithmetic is math.hpp's.
#pragma once

#include "perigee/kernels/math.hpp"
#include "perigee/kernels/reference/operand.hpp"

namespace pg::reference {

// y = f(a, b), computed in the inputs' common dtype, which need not be y's (comparisons).
template <class F>
void binary(const Operand& a, const Operand& b, const Operand& y, F f) {
  with_compute(a.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto x = read<W>(broadcast(a, y.shape)), z = read<W>(broadcast(b, y.shape));
    for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<W>(f(x[i], z[i]));
    write(y, x);
  });
}

// y = f(x, parameters)
template <class F>
void unary(const Operand& x, const Operand& y, const std::vector<double>& parameters, F f) {
  with_compute(x.dtype, [&](auto tag) {
    using W = decltype(tag);
    std::vector<W> p;
    for (double value : parameters) p.push_back(narrow<W>(value));
    auto values = read<W>(broadcast(x, y.shape));
    for (W& value : values) value = static_cast<W>(f(value, p.data()));
    write(y, values);
  });
}

// y = f(x, d, parameters): cotangents d through an activation at x.
template <class F>
void slope(const Operand& x, const Operand& d, const Operand& y, const std::vector<double>& parameters, F f) {
  with_compute(y.dtype, [&](auto tag) {
    using W = decltype(tag);
    if constexpr (is_float<W>) {
      std::vector<W> p;
      for (double value : parameters) p.push_back(narrow<W>(value));
      auto at = read<W>(broadcast(x, y.shape)), values = read<W>(broadcast(d, y.shape));
      for (size_t i = 0; i < values.size(); i++) values[i] = f(at[i], values[i], p.data());
      write(y, values);
    }
  });
}

// y = f(a, b, c, parameters)
template <class F>
void ternary(const Operand& a, const Operand& b, const Operand& c, const Operand& y,
             const std::vector<double>& parameters, F f) {
  with_compute(y.dtype, [&](auto tag) {
    using W = decltype(tag);
    std::vector<W> p;
    for (double value : parameters) p.push_back(narrow<W>(value));
    auto x = read<W>(broadcast(a, y.shape)), z = read<W>(broadcast(b, y.shape)), w = read<W>(broadcast(c, y.shape));
    for (size_t i = 0; i < x.size(); i++) x[i] = f(x[i], z[i], w[i], p.data());
    write(y, x);
  });
}

inline void where(const Operand& condition, const Operand& a, const Operand& b, const Operand& y) {
  with_compute(y.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto choice = read<int64_t>(broadcast(condition, y.shape));
    auto x = read<W>(broadcast(a, y.shape)), z = read<W>(broadcast(b, y.shape));
    for (size_t i = 0; i < x.size(); i++) x[i] = choice[i] ? x[i] : z[i];
    write(y, x);
  });
}

inline void masked_fill(const Operand& x, const Operand& mask, double value, const Operand& y) {
  with_compute(y.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto hide = read<int64_t>(broadcast(mask, y.shape));
    auto values = read<W>(broadcast(x, y.shape));
    for (size_t i = 0; i < values.size(); i++) values[i] = hide[i] ? narrow<W>(value) : values[i];
    write(y, values);
  });
}

}  // namespace pg::reference
