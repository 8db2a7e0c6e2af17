// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/matrix.hpp: matrix products.
#pragma once

#include "perigee/kernels/math.hpp"
#include "perigee/kernels/reference/operand.hpp"

namespace pg::reference {

// c[m, n] += a[m, k] b[k, n], all row-major.
template <class W>
void multiply(const W* a, const W* b, Sum<W>* c, int64_t m, int64_t k, int64_t n) {
  for (int64_t i = 0; i < m; i++) {
    for (int64_t p = 0; p < k; p++) {
      Sum<W> left = a[i * k + p];
      for (int64_t j = 0; j < n; j++) {
        Sum<W>& to = c[i * n + j];
        to = wrapping_add(to, wrapping_multiply<Sum<W>>(left, b[p * n + j]));
      }
    }
  }
}

// Batched, broadcasting; a vector on the left is a row, on the right a column, and its axis is missing from y.
// `transpose` swaps the last two axes first.
inline void matmul(Operand a, Operand b, bool transpose_a, bool transpose_b, const Operand& y) {
  auto swap = [](Operand& x) {
    size_t r = x.shape.size();
    std::swap(x.shape[r - 1], x.shape[r - 2]);
    std::swap(x.stride[r - 1], x.stride[r - 2]);
  };
  bool row = a.rank() == 1, column = b.rank() == 1;
  if (transpose_a && !row) swap(a);
  if (transpose_b && !column) swap(b);
  if (row) a.shape.insert(a.shape.begin(), 1), a.stride.insert(a.stride.begin(), 0);
  if (column) b.shape.push_back(1), b.stride.push_back(0);
  int64_t m = a.shape[a.rank() - 2], k = a.shape[a.rank() - 1], n = b.shape[b.rank() - 1];

  Dims batch(y.shape.begin(), y.shape.end() - (row ? 0 : 1) - (column ? 0 : 1));
  auto spread = [&](const Operand& x, int64_t rows, int64_t columns) {
    Dims shape = batch;
    shape.push_back(rows), shape.push_back(columns);
    return broadcast(x, shape);
  };
  with_compute(a.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto left = read<W>(spread(a, m, k)), right = read<W>(spread(b, k, n));
    std::vector<Sum<W>> out(static_cast<size_t>(product(batch) * m * n), 0);
    for (int64_t i = 0; i < product(batch); i++) {
      multiply<W>(left.data() + i * m * k, right.data() + i * k * n, out.data() + i * m * n, m, k, n);
    }
    write(y, out);
  });
}

struct Unchanged {
  double operator()(double x, const double*) const { return x; }
};

// y[..., o] = activation(sum over i of x[..., i] weight[o, i], plus bias[o]); activations of floats only.
template <class Activation = Unchanged>
void linear(const Operand& x, Operand weight, const Operand& bias, const Operand& y, Activation activation = {}) {
  std::swap(weight.shape[0], weight.shape[1]);
  std::swap(weight.stride[0], weight.stride[1]);
  int64_t in = weight.shape[0], out = weight.shape[1], rows = out == 0 ? 0 : y.count() / out;
  with_compute(x.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto values = read<W>(x), matrix = read<W>(weight);
    std::vector<Sum<W>> sums(static_cast<size_t>(y.count()), 0);
    if (bias) sums = read<Sum<W>>(broadcast(bias, y.shape));
    multiply<W>(values.data(), matrix.data(), sums.data(), rows, in, out);
    if constexpr (is_float<W>) {
      for (double& sum : sums) sum = activation(sum, static_cast<const double*>(nullptr));
    }
    write(y, sums);
  });
}

}  // namespace pg::reference
