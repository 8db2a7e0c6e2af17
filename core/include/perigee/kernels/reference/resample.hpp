// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/resample.hpp: one axis interpolated, and the transpose of that.
#pragma once

#include "perigee/kernels/reference/operand.hpp"
#include "perigee/kernels/resample.hpp"

namespace pg::reference {

// body(place in the long x, place in y, weight) for every product.
template <class Body>
void each_product(const ResampleTable& table, const Dims& x, const Dims& y, int64_t axis, Body&& body) {
  AxisSplit in(x, axis), out(y, axis);
  for (int64_t b = 0; b < out.before; b++) {
    for (int64_t o = 0; o < out.length; o++) {
      for (int64_t k = table.begin[o]; k < table.begin[o + 1]; k++) {
        for (int64_t i = 0; i < out.after; i++)
          body((b * in.length + table.index[k]) * in.after + i, (b * out.length + o) * out.after + i, table.weight[k]);
      }
    }
  }
}

inline void resample(const ResampleTable& table, const Operand& x, int64_t axis, const Operand& y) {
  std::vector<double> out(static_cast<size_t>(y.count()), 0), in = read<double>(x);
  each_product(table, x.shape, y.shape, axis, [&](int64_t from, int64_t to, double w) { out[to] += w * in[from]; });
  write(y, out);
}

inline void resample_grad(const ResampleTable& table, const Operand& dy, int64_t axis, const Operand& dx) {
  std::vector<double> out(static_cast<size_t>(dx.count()), 0), flow = read<double>(dy);
  each_product(table, dx.shape, dy.shape, axis, [&](int64_t to, int64_t from, double w) { out[to] += w * flow[from]; });
  write(dx, out);
}

}  // namespace pg::reference
