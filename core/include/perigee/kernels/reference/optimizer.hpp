// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/optimizer.hpp: one step for every tensor of a model.
#pragma once

#include <cmath>

#include "perigee/kernels/reference/operand.hpp"

namespace pg::reference {

// Kingma and Ba 2015; `decoupled` weight decay: Loshchilov and Hutter 2019. Gradients are divided by grad_scale.
struct Adam {
  double lr, beta1, beta2, eps, weight_decay, step, grad_scale;
  bool decoupled;
};

inline void adam(const Adam& a, const Operand& param, const Operand& gradient, const Operand& exp_avg,
                 const Operand& exp_avg_sq) {
  auto p = read<double>(param), g = read<double>(gradient), m = read<double>(exp_avg), v = read<double>(exp_avg_sq);
  double correction1 = 1 - std::pow(a.beta1, a.step), correction2 = 1 - std::pow(a.beta2, a.step);
  for (size_t i = 0; i < p.size(); i++) {
    double grad = g[i] / a.grad_scale;
    if (a.decoupled)
      p[i] -= a.lr * a.weight_decay * p[i];
    else
      grad += a.weight_decay * p[i];
    m[i] = a.beta1 * m[i] + (1 - a.beta1) * grad;
    v[i] = a.beta2 * v[i] + (1 - a.beta2) * grad * grad;
    p[i] -= a.lr * (m[i] / correction1) / (std::sqrt(v[i] / correction2) + a.eps);
  }
  write(param, p);
  write(exp_avg, m);
  write(exp_avg_sq, v);
}

// With momentum: b = momentum b + (1 - dampening) g, on the first step b = g; Nesterov steps along g + momentum b.
struct Sgd {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, first;
};

inline void sgd(const Sgd& s, const Operand& param, const Operand& gradient, const Operand& buffer) {
  auto p = read<double>(param), g = read<double>(gradient);
  auto b = buffer ? read<double>(buffer) : std::vector<double>();
  for (size_t i = 0; i < p.size(); i++) {
    double grad = g[i] + s.weight_decay * p[i];
    if (buffer) {
      b[i] = s.first ? grad : s.momentum * b[i] + (1 - s.dampening) * grad;
      grad = s.nesterov ? grad + s.momentum * b[i] : b[i];
    }
    p[i] -= s.lr * grad;
  }
  write(param, p);
  if (buffer) write(buffer, b);
}

}  // namespace pg::reference
