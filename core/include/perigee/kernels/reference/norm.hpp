// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/norm.hpp: batch and layer normalisation (Ioffe and Szegedy 2015; Ba, Kiros, Hinton 2016).
#pragma once

#include <cmath>

#include "perigee/kernels/reference/operand.hpp"

namespace pg::reference {

// Elements that share statistics: element k of set s lies at place(s, k) of the row-major tensor.
struct Sets {
  int64_t count, size, inner, before;  // batch_norm: a set a channel; layer_norm: a set a row
  static Sets channels(const Dims& x) {
    AxisSplit s(x, 1);
    return {s.length, s.before * s.after, s.after, s.length * s.after};
  }
  static Sets rows(const Dims& x, int64_t dims) {
    int64_t size = 1, count = 1;
    for (size_t i = 0; i < x.size(); i++) (i + static_cast<size_t>(dims) >= x.size() ? size : count) *= x[i];
    return {count, size, size == 0 ? 1 : size, 0};
  }
  int64_t place(int64_t set, int64_t k) const { return k / inner * before + set * inner + k % inner; }
};

struct Statistics {
  std::vector<double> mean, variance;  // variance: divided by the number of elements
};

inline Statistics statistics(const std::vector<double>& x, const Sets& sets) {
  Statistics out;
  double n = static_cast<double>(sets.size);
  for (int64_t s = 0; s < sets.count; s++) {
    double sum = 0, squares = 0;
    for (int64_t k = 0; k < sets.size; k++) sum += x[sets.place(s, k)];
    double mean = sum / n;
    for (int64_t k = 0; k < sets.size; k++) squares += (x[sets.place(s, k)] - mean) * (x[sets.place(s, k)] - mean);
    out.mean.push_back(mean);
    out.variance.push_back(squares / n);
  }
  return out;
}

inline std::vector<double> read_or(const Operand& x, int64_t count, double value) {
  return x ? read<double>(x) : std::vector<double>(static_cast<size_t>(count), value);
}

struct BatchNorm {
  Operand x, weight, bias, running_mean, running_var;
  bool training;
  double momentum, eps;
  Operand y, mean, invstd;  // mean and invstd: what y was computed with
};

inline void batch_norm(const BatchNorm& call) {
  Sets sets = Sets::channels(call.x.shape);
  std::vector<double> x = read<double>(call.x), y(x.size()), invstd;
  Statistics stats;
  if (call.training)
    stats = statistics(x, sets);
  else
    stats = {read_or(call.running_mean, sets.count, 0), read_or(call.running_var, sets.count, 1)};

  auto weight = read_or(call.weight, sets.count, 1), bias = read_or(call.bias, sets.count, 0);
  for (int64_t c = 0; c < sets.count; c++) {
    invstd.push_back(1 / std::sqrt(stats.variance[c] + call.eps));
    for (int64_t k = 0; k < sets.size; k++) {
      int64_t at = sets.place(c, k);
      y[at] = (x[at] - stats.mean[c]) * invstd[c] * weight[c] + bias[c];
    }
  }
  write(call.y, y);
  if (call.mean) write(call.mean, stats.mean);
  if (call.invstd) write(call.invstd, invstd);
  if (!call.training || sets.size == 0) return;

  // The running variance is that of the population: divided by n - 1.
  double unbiased = static_cast<double>(sets.size) / static_cast<double>(std::max<int64_t>(sets.size - 1, 1));
  auto blend = [&](const Operand& running, const std::vector<double>& now, double scale) {
    if (!running) return;
    auto values = read<double>(running);
    for (size_t c = 0; c < values.size(); c++) values[c] += call.momentum * (now[c] * scale - values[c]);
    write(running, values);
  };
  blend(call.running_mean, stats.mean, 1);
  blend(call.running_var, stats.variance, unbiased);
}

struct NormGrad {
  Operand dy, x, weight, mean, invstd, dx, dweight, dbias;
};

// With z = (x - mean) invstd and g = dy weight:  dx = invstd (g - mean(g) - z mean(g z)); where the statistics were
// constants (`fixed`) just invstd g. Weights belong to sets (batch_norm) or to places within one (layer_norm).
inline void norm_grad(const NormGrad& call, const Sets& sets, bool fixed, bool weight_by_set) {
  auto dy = read<double>(call.dy), x = read<double>(call.x), mean = read<double>(call.mean),
       invstd = read<double>(call.invstd);
  int64_t weights = weight_by_set ? sets.count : sets.size;
  auto weight = read_or(call.weight, weights, 1);
  std::vector<double> dx(x.size()), dweight(static_cast<size_t>(weights), 0), dbias(static_cast<size_t>(weights), 0);
  double n = static_cast<double>(sets.size);
  for (int64_t s = 0; s < sets.count; s++) {
    double sum = 0, sum_z = 0;
    for (int64_t k = 0; k < sets.size; k++) {
      int64_t at = sets.place(s, k), w = weight_by_set ? s : k;
      double z = (x[at] - mean[s]) * invstd[s];
      dweight[w] += dy[at] * z;
      dbias[w] += dy[at];
      sum += dy[at] * weight[w];
      sum_z += dy[at] * weight[w] * z;
    }
    for (int64_t k = 0; k < sets.size; k++) {
      int64_t at = sets.place(s, k);
      double g = dy[at] * weight[weight_by_set ? s : k], z = (x[at] - mean[s]) * invstd[s];
      dx[at] = invstd[s] * (fixed ? g : g - sum / n - z * sum_z / n);
    }
  }
  if (call.dx) write(call.dx, dx);
  if (call.dweight) write(call.dweight, dweight);
  if (call.dbias) write(call.dbias, dbias);
}

inline void layer_norm(const Operand& x, const Operand& weight, const Operand& bias, int64_t dims, double eps,
                       const Operand& y, const Operand& mean, const Operand& invstd) {
  Sets sets = Sets::rows(x.shape, dims);
  auto in = read<double>(x), scale = read_or(weight, sets.size, 1), shift = read_or(bias, sets.size, 0);
  Statistics stats = statistics(in, sets);
  std::vector<double> out(in.size()), inverse;
  for (int64_t s = 0; s < sets.count; s++) {
    inverse.push_back(1 / std::sqrt(stats.variance[s] + eps));
    for (int64_t k = 0; k < sets.size; k++) {
      int64_t at = sets.place(s, k);
      out[at] = (in[at] - stats.mean[s]) * inverse[s] * scale[k] + shift[k];
    }
  }
  write(y, out);
  if (mean) write(mean, stats.mean);
  if (invstd) write(invstd, inverse);
}

}  // namespace pg::reference
