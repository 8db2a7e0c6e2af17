// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/optimizer.hpp: the arithmetic of every elementwise optimizer step, once, for all devices.
//
// A rule is a struct of coefficients, templated on the type it computes in (float; double for float64 parameters).
// Its constructor makes them, in double (differences too, which are narrowed last), from the operator's attributes in
// the order of kAttrs; its call changes one element: x[0] is the parameter, x[1] the gradient, the others the state.
// Operands in kOptional may be absent: bit k of `present` says that x[k] is there. PG_UPDATE_RULES lists operators and
// rules, in the order of UpdateRule.
#pragma once

#include <cmath>
#include <cstdint>

#include "perigee/kernels/hd.hpp"

// clang-format off
#define PG_UPDATE_RULES(row) \
  row("sgd", Sgd) row("adam", Adam) row("rmsprop", RmsProp) row("lion", Lion) row("adagrad", Adagrad) \
  row("adadelta", Adadelta) row("adamax", Adamax) row("nadam", NAdam) row("radam", RAdam) row("rprop", Rprop)
// clang-format on

// What every update operator has, before what is its own.
#define PG_UPDATE_ATTRS "lr", "weight_decay", "step", "grad_scale", "maximize"

namespace pg::update {

constexpr int kCommonAttrs = 5, kMaxAttrs = 12;

PG_HD float fused(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return ::fmaf(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}
PG_HD double fused(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return ::fma(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}
// A running mean that takes `share` of what is new. The share of what stays is never formed: of 0.999 in float, the
// difference to 1 has lost four digits.
template <class T>
PG_HD T blend(T share, T mean, T x) {
  return fused(share, x - mean, mean);
}
template <class T>
PG_HD T sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;
}
template <class T>
PG_HD T larger(T a, T b) {
  return a > b ? a : b;
}

// What the common attributes come to.
struct Common {
  double lr, decay, step, scale;
  const double* own;  // the rule's own attributes
  bool first;
  explicit Common(const double* a)
      : lr(a[0]),
        decay(a[1]),
        step(a[2]),
        scale((a[4] != 0 ? -1 : 1) / a[3]),
        own(a + kCommonAttrs),
        first(a[2] <= 1) {}
};

// With momentum: b = momentum b + (1 - dampening) g, on the first step b = g; Nesterov steps along g + momentum b
// (Sutskever et al. 2013).
template <class T>
struct Sgd {
  static constexpr int kOperands = 3;
  static constexpr uint32_t kOptional = 4;
  static constexpr const char* kAttrs[kCommonAttrs + 3] = {PG_UPDATE_ATTRS, "momentum", "dampening", "nesterov"};
  T lr, decay, scale, keep, take, look, direct;

  explicit Sgd(const double* a) {
    Common c(a);
    double momentum = c.own[0];
    bool nesterov = c.own[2] != 0;
    lr = T(c.lr), decay = T(c.decay), scale = T(c.scale);
    keep = T(c.first ? 0 : momentum), take = T(c.first ? 1 : 1 - c.own[1]);
    look = T(nesterov ? momentum : 1), direct = T(nesterov ? 1 : 0);
  }
  PG_HD void operator()(T (&x)[3], uint32_t present) const {
    T g = fused(decay, x[0], x[1] * scale);
    if ((present & 4) != 0) {
      x[2] = fused(keep, x[2], take * g);
      g = fused(look, x[2], direct * g);
    }
    x[0] = fused(-lr, g, x[0]);
  }
};

// Kingma and Ba 2015; decoupled weight decay: Loshchilov and Hutter 2019; with the largest v so far in place of v:
// Reddi et al. 2018.
template <class T>
struct Adam {
  static constexpr int kOperands = 5;
  static constexpr uint32_t kOptional = 16;
  static constexpr const char* kAttrs[kCommonAttrs + 4] = {PG_UPDATE_ATTRS, "beta1", "beta2", "eps", "decoupled"};
  T step_size, share1, share2, eps, decay, lost, scale, inv_root2;

  explicit Adam(const double* a) {
    Common c(a);
    bool decoupled = c.own[3] != 0;
    share1 = T(1 - c.own[0]), share2 = T(1 - c.own[1]), eps = T(c.own[2]);
    step_size = T(c.lr / (1 - std::pow(c.own[0], c.step)));
    inv_root2 = T(1 / std::sqrt(1 - std::pow(c.own[1], c.step)));
    decay = T(decoupled ? 0 : c.decay), lost = T(decoupled ? -c.lr * c.decay : 0), scale = T(c.scale);
  }
  PG_HD void operator()(T (&x)[5], uint32_t present) const {
    T p = fused(lost, x[0], x[0]), g = fused(decay, p, x[1] * scale);
    x[2] = blend(share1, x[2], g);
    T square = x[3] = blend(share2, x[3], g * g);
    if ((present & 16) != 0) square = x[4] = larger(x[4], square);
    x[0] = fused(-step_size, x[2] / fused(std::sqrt(square), inv_root2, eps), p);
  }
};

// Tieleman and Hinton 2012; centred: Graves 2013. A variance that rounding makes negative counts as 0.
template <class T>
struct RmsProp {
  static constexpr int kOperands = 5;
  static constexpr uint32_t kOptional = 8 | 16;
  static constexpr const char* kAttrs[kCommonAttrs + 3] = {PG_UPDATE_ATTRS, "alpha", "eps", "momentum"};
  T lr, decay, scale, share, eps, momentum;

  explicit RmsProp(const double* a) {
    Common c(a);
    lr = T(c.lr), decay = T(c.decay), scale = T(c.scale);
    share = T(1 - c.own[0]), eps = T(c.own[1]), momentum = T(c.own[2]);
  }
  PG_HD void operator()(T (&x)[5], uint32_t present) const {
    T g = fused(decay, x[0], x[1] * scale);
    T square = x[2] = blend(share, x[2], g * g);
    if ((present & 16) != 0) {
      x[4] = blend(share, x[4], g);
      square = larger(fused(-x[4], x[4], square), T(0));
    }
    T d = g / (std::sqrt(square) + eps);
    if ((present & 8) != 0) d = x[3] = fused(momentum, x[3], d);
    x[0] = fused(-lr, d, x[0]);
  }
};

// Chen et al. 2023: the sign of a mix of momentum and gradient; weight decay outside the gradient.
template <class T>
struct Lion {
  static constexpr int kOperands = 3;
  static constexpr uint32_t kOptional = 0;
  static constexpr const char* kAttrs[kCommonAttrs + 2] = {PG_UPDATE_ATTRS, "beta1", "beta2"};
  T lr, lost, scale, share1, share2;

  explicit Lion(const double* a) {
    Common c(a);
    lr = T(c.lr), lost = T(-c.lr * c.decay), scale = T(c.scale);
    share1 = T(1 - c.own[0]), share2 = T(1 - c.own[1]);
  }
  PG_HD void operator()(T (&x)[3], uint32_t) const {
    T g = x[1] * scale;
    x[0] = fused(-lr, sign(blend(share1, x[2], g)), fused(lost, x[0], x[0]));
    x[2] = blend(share2, x[2], g);
  }
};

// Duchi, Hazan and Singer 2011.
template <class T>
struct Adagrad {
  static constexpr int kOperands = 3;
  static constexpr uint32_t kOptional = 0;
  static constexpr const char* kAttrs[kCommonAttrs + 3] = {PG_UPDATE_ATTRS, "lr_decay", "initial_accumulator_value",
                                                           "eps"};
  T lr, decay, scale, keep, start, eps;

  explicit Adagrad(const double* a) {
    Common c(a);
    lr = T(c.lr / (1 + (c.step - 1) * c.own[0])), decay = T(c.decay), scale = T(c.scale);
    keep = T(c.first ? 0 : 1), start = T(c.first ? c.own[1] : 0), eps = T(c.own[2]);
  }
  PG_HD void operator()(T (&x)[3], uint32_t) const {
    T g = fused(decay, x[0], x[1] * scale);
    x[2] = fused(g, g, fused(keep, x[2], start));
    x[0] = fused(-lr, g / (std::sqrt(x[2]) + eps), x[0]);
  }
};

// Zeiler 2012.
template <class T>
struct Adadelta {
  static constexpr int kOperands = 4;
  static constexpr uint32_t kOptional = 0;
  static constexpr const char* kAttrs[kCommonAttrs + 2] = {PG_UPDATE_ATTRS, "rho", "eps"};
  T lr, decay, scale, share, eps;

  explicit Adadelta(const double* a) {
    Common c(a);
    lr = T(c.lr), decay = T(c.decay), scale = T(c.scale), share = T(1 - c.own[0]), eps = T(c.own[1]);
  }
  PG_HD void operator()(T (&x)[4], uint32_t) const {
    T g = fused(decay, x[0], x[1] * scale);
    x[2] = blend(share, x[2], g * g);
    T d = std::sqrt(x[3] + eps) / std::sqrt(x[2] + eps) * g;
    x[3] = blend(share, x[3], d * d);
    x[0] = fused(-lr, d, x[0]);
  }
};

// Kingma and Ba 2015, section 7: Adam in the infinity norm.
template <class T>
struct Adamax {
  static constexpr int kOperands = 4;
  static constexpr uint32_t kOptional = 0;
  static constexpr const char* kAttrs[kCommonAttrs + 3] = {PG_UPDATE_ATTRS, "beta1", "beta2", "eps"};
  T step_size, decay, scale, share1, beta2, eps;

  explicit Adamax(const double* a) {
    Common c(a);
    step_size = T(c.lr / (1 - std::pow(c.own[0], c.step))), decay = T(c.decay), scale = T(c.scale);
    share1 = T(1 - c.own[0]), beta2 = T(c.own[1]), eps = T(c.own[2]);
  }
  PG_HD void operator()(T (&x)[4], uint32_t) const {
    T g = fused(decay, x[0], x[1] * scale);
    x[2] = blend(share1, x[2], g);
    x[3] = larger((g < T(0) ? -g : g) + eps, beta2 * x[3]);
    x[0] = fused(-step_size, x[2] / x[3], x[0]);
  }
};

// The momentum of NAdam's step t grows from beta1 / 2 towards beta1.
inline double nadam_momentum(double beta1, double decay, double t) {
  return beta1 * (1 - 0.5 * std::pow(0.96, t * decay));
}

// The product of those of all steps, which goes on from the last one that was asked for where it can.
inline double nadam_product(double beta1, double decay, double step) {
  struct Known {
    double beta1 = -1, decay = -1, step = 0, product = 1;
  };
  static thread_local Known known;
  if (beta1 != known.beta1 || decay != known.decay || step < known.step) known = {beta1, decay, 0, 1};
  while (known.step < step) known.product *= nadam_momentum(beta1, decay, ++known.step);
  return known.product;
}

// Dozat 2016.
template <class T>
struct NAdam {
  static constexpr int kOperands = 4;
  static constexpr uint32_t kOptional = 0;
  static constexpr const char* kAttrs[kCommonAttrs + 4] = {PG_UPDATE_ATTRS, "beta1", "beta2", "eps", "momentum_decay"};
  T now, then, decay, scale, share1, share2, eps, inv_root2;

  explicit NAdam(const double* a) {
    Common c(a);
    double mu = nadam_momentum(c.own[0], c.own[3], c.step), next = nadam_momentum(c.own[0], c.own[3], c.step + 1);
    double product = nadam_product(c.own[0], c.own[3], c.step);
    decay = T(c.decay), scale = T(c.scale), eps = T(c.own[2]);
    share1 = T(1 - c.own[0]), share2 = T(1 - c.own[1]);
    now = T(c.lr * (1 - mu) / (1 - product)), then = T(c.lr * next / (1 - product * next));
    inv_root2 = T(1 / std::sqrt(1 - std::pow(c.own[1], c.step)));
  }
  PG_HD void operator()(T (&x)[4], uint32_t) const {
    T g = fused(decay, x[0], x[1] * scale);
    x[2] = blend(share1, x[2], g);
    x[3] = blend(share2, x[3], g * g);
    x[0] -= fused(now, g, then * x[2]) / fused(std::sqrt(x[3]), inv_root2, eps);
  }
};

// Liu et al. 2020: while the variance of the adaptive rate is unknown (five steps or fewer count), momentum alone.
template <class T>
struct RAdam {
  static constexpr int kOperands = 4;
  static constexpr uint32_t kOptional = 0;
  static constexpr const char* kAttrs[kCommonAttrs + 3] = {PG_UPDATE_ATTRS, "beta1", "beta2", "eps"};
  T step_size, rectified, plain, decay, scale, share1, share2, eps;

  explicit RAdam(const double* a) {
    Common c(a);
    double beta2_t = std::pow(c.own[1], c.step), most = 2 / (1 - c.own[1]) - 1;
    double length = most - 2 * c.step * beta2_t / (1 - beta2_t);
    bool known = length > 5;
    decay = T(c.decay), scale = T(c.scale), eps = T(c.own[2]);
    share1 = T(1 - c.own[0]), share2 = T(1 - c.own[1]);
    step_size = T(c.lr / (1 - std::pow(c.own[0], c.step)));
    plain = T(known ? 0 : 1);
    rectified = T(known ? std::sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)) *
                              std::sqrt(1 - beta2_t)
                        : 0);
  }
  PG_HD void operator()(T (&x)[4], uint32_t) const {
    T g = fused(decay, x[0], x[1] * scale);
    x[2] = blend(share1, x[2], g);
    x[3] = blend(share2, x[3], g * g);
    T rate = plain > T(0) ? plain : rectified / (std::sqrt(x[3]) + eps);
    x[0] = fused(-step_size, x[2] * rate, x[0]);
  }
};

// Riedmiller and Braun 1993: a step length an element, longer while the gradient keeps its sign; where it changes, the
// element waits a step.
template <class T>
struct Rprop {
  static constexpr int kOperands = 4;
  static constexpr uint32_t kOptional = 0;
  static constexpr const char* kAttrs[kCommonAttrs + 4] = {PG_UPDATE_ATTRS, "etaminus", "etaplus", "step_min",
                                                           "step_max"};
  T keep, start, decay, scale, minus, plus, least, most;

  explicit Rprop(const double* a) {
    Common c(a);
    keep = T(c.first ? 0 : 1), start = T(c.first ? c.lr : 0), decay = T(c.decay), scale = T(c.scale);
    minus = T(c.own[0]), plus = T(c.own[1]), least = T(c.own[2]), most = T(c.own[3]);
  }
  PG_HD void operator()(T (&x)[4], uint32_t) const {
    T g = fused(decay, x[0], x[1] * scale), turn = g * (keep * x[2]);
    T length = fused(keep, x[3], start) * (turn > T(0) ? plus : turn < T(0) ? minus : T(1));
    length = length < least ? least : length > most ? most : length;
    g = turn < T(0) ? T(0) : g;
    x[0] -= sign(g) * length;
    x[2] = g;
    x[3] = length;
  }
};

}  // namespace pg::update
