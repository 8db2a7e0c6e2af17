// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/elementwise.hpp: one functor of math.hpp, element by element over broadcast operands.
// scalar.hpp has whole expressions.
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

}  // namespace pg::reference
