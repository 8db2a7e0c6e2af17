// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/create.hpp: tensors made of nothing, and reductions across tensors.
#pragma once

#include <cmath>
#include <string>

#include "perigee/kernels/reference/operand.hpp"

namespace pg::reference {

inline void fill(const pg_number& value, const Operand& y) {
  if ((dtype_class(y.dtype) & (PG_M_FLOAT | PG_M_FLOAT8)) != 0)
    return write(y, std::vector<double>(static_cast<size_t>(y.count()), value.real));
  // A boolean asks whether it is zero, before the fraction is cut off.
  int64_t whole = y.dtype == PG_B8 ? value.real != 0 : whole_of(value);
  write(y, std::vector<int64_t>(static_cast<size_t>(y.count()), whole));
}

inline void fill(double value, const Operand& y) { fill(make_number(value), y); }

// start + i step, in double.
inline void arange(double start, double step, const Operand& y) {
  std::vector<double> out;
  for (int64_t i = 0; i < y.count(); i++) out.push_back(start + static_cast<double>(i) * step);
  write(y, out);
}

// From first to last in equal steps, in double.
inline void spaced(double first, double last, const Operand& y) {
  int64_t n = y.count();
  double step = n > 1 ? (last - first) / static_cast<double>(n - 1) : 0;
  std::vector<double> out;
  for (int64_t i = 0; i < n; i++) out.push_back(i + 1 == n && n > 1 ? last : first + static_cast<double>(i) * step);
  write(y, out);
}

// Every y is the reduction over all xs, in the order given. op: "sum", "mean", "max", "min".
inline void all_reduce(const std::vector<Operand>& xs, const std::string& op, const std::vector<Operand>& ys) {
  if (xs.empty()) return;
  with_compute(xs[0].dtype, [&](auto tag) {
    using W = Sum<decltype(tag)>;
    auto total = read<W>(xs[0]);
    for (size_t k = 1; k < xs.size(); k++) {
      auto next = read<W>(xs[k]);
      for (size_t i = 0; i < total.size(); i++) {
        W a = total[i], b = next[i];
        total[i] = op == "max" ? (a > b || a != a ? a : b) : op == "min" ? (a < b || a != a ? a : b) : a + b;
      }
    }
    if (op == "mean") {
      for (W& value : total) value /= static_cast<W>(xs.size());
    }
    for (const Operand& y : ys) write(y, total);
  });
}

}  // namespace pg::reference
