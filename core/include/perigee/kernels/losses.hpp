// SPDX-License-Identifier: Apache-2.0
// The scalar arithmetic of losses that compare two tensors element by element, once for all devices: what an element
// costs, `value`, and its derivative by the prediction, `slope`. x is the prediction, y the target, a a third tensor
// where the loss has one, p the loss's parameters. NaN stays NaN, and there are no branches, so that loops vectorise.
#pragma once

#include "perigee/kernels/basic_math.hpp"

namespace pg::math {

template <class T>
PG_HD T sign_of(T x) {
  T above = x > T(0) ? T(1) : x;  // 0 and NaN are themselves
  return x < T(0) ? T(-1) : above;
}
// log(1 + e^x)
template <class T>
PG_HD T softplus_of(T x) {
  return (x < T(0) ? T(0) : x) + log1p_exp_of(-std::fabs(x));
}

struct MseLoss {
  template <class T>
  static PG_HD T value(T x, T y, T, const T*) {
    return (x - y) * (x - y);
  }
  template <class T>
  static PG_HD T slope(T x, T y, T, const T*) {
    return (x - y) * T(2);
  }
};
struct L1Loss {
  template <class T>
  static PG_HD T value(T x, T y, T, const T*) {
    return std::fabs(x - y);
  }
  template <class T>
  static PG_HD T slope(T x, T y, T, const T*) {
    return sign_of(x - y);
  }
};
// p: delta
struct HuberLoss {
  template <class T>
  static PG_HD T value(T x, T y, T, const T* p) {
    T d = std::fabs(x - y), within = d > p[0] ? p[0] : d;
    return within * (d - within * T(0.5));
  }
  template <class T>
  static PG_HD T slope(T x, T y, T, const T* p) {
    T d = x - y, low = d < -p[0] ? -p[0] : d;
    return low > p[0] ? p[0] : low;
  }
};
// p: beta; 0: the L1 loss
struct SmoothL1Loss {
  template <class T>
  static PG_HD T value(T x, T y, T, const T* p) {
    T d = std::fabs(x - y), inside = d * d * T(0.5) / p[0], outside = d - p[0] * T(0.5);
    return d < p[0] ? inside : outside;
  }
  template <class T>
  static PG_HD T slope(T x, T y, T, const T* p) {
    T d = x - y, inside = d / p[0], outside = sign_of(d);
    return std::fabs(d) < p[0] ? inside : outside;
  }
};
// Of a probability x in [0, 1]. p: the least x (1 - x) that is divided by. Logarithms end at -100.
struct BceLoss {
  template <class T>
  static PG_HD T value(T x, T y, T, const T*) {
    T yes = log_of(x), no = log1p_of(-x);
    yes = yes < T(-100) ? T(-100) : yes;
    no = no < T(-100) ? T(-100) : no;
    return -(y * yes + (T(1) - y) * no);
  }
  template <class T>
  static PG_HD T slope(T x, T y, T, const T* p) {
    T spread = x * (T(1) - x);
    return (x - y) / (spread < p[0] ? p[0] : spread);
  }
};
// Of a logit x: max(x, 0) - x y + log(1 + e^-|x|).
struct BceLogitsLoss {
  template <class T>
  static PG_HD T value(T x, T y, T, const T*) {
    return (x < T(0) ? T(0) : x) - x * y + log1p_exp_of(-std::fabs(x));
  }
  template <class T>
  static PG_HD T slope(T x, T y, T, const T*) {
    return sigmoid_of(x) - y;
  }
};
// a: what positives cost
struct BceLogitsWeighedLoss {
  template <class T>
  static PG_HD T value(T x, T y, T a, const T*) {
    return (T(1) - y) * x + (T(1) + (a - T(1)) * y) * softplus_of(-x);
  }
  template <class T>
  static PG_HD T slope(T x, T y, T a, const T*) {
    return (T(1) - y) - (T(1) + (a - T(1)) * y) * sigmoid_of(-x);
  }
};
// x: log probabilities; y log y is 0 where y is not above 0.
struct KlDivLoss {
  template <class T>
  static PG_HD T value(T x, T y, T, const T*) {
    return y * log_of(y > T(0) ? y : T(1)) - y * x;
  }
  template <class T>
  static PG_HD T slope(T, T y, T, const T*) {
    return -y;
  }
};
struct KlDivLogLoss {
  template <class T>
  static PG_HD T value(T x, T y, T, const T*) {
    return exp_of(y) * (y - x);
  }
  template <class T>
  static PG_HD T slope(T, T y, T, const T*) {
    return -exp_of(y);
  }
};
// Stirling's approximation of log(y!), of counts above 1.
template <class T>
PG_HD T log_factorial_of(T y) {
  T n = y > T(1) ? y : T(1);
  T terms = n * log_of(n) - n + log_of(n * T(6.28318530717958647693)) * T(0.5);
  return y > T(1) ? terms : T(0);
}
// x: the logarithm of the mean
template <bool full>
struct PoissonNllLogLoss {
  template <class T>
  static PG_HD T value(T x, T y, T, const T*) {
    T some = exp_of(x) - y * x;
    if constexpr (full) return some + log_factorial_of(y);
    return some;
  }
  template <class T>
  static PG_HD T slope(T x, T y, T, const T*) {
    return exp_of(x) - y;
  }
};
// p: eps
template <bool full>
struct PoissonNllLoss {
  template <class T>
  static PG_HD T value(T x, T y, T, const T* p) {
    T some = x - y * log_of(x + p[0]);
    if constexpr (full) return some + log_factorial_of(y);
    return some;
  }
  template <class T>
  static PG_HD T slope(T x, T y, T, const T* p) {
    return T(1) - y / (x + p[0]);
  }
};
// a: the variance, of which what is below eps is eps; p: eps
template <bool full>
struct GaussianNllLoss {
  template <class T>
  static PG_HD T value(T x, T y, T a, const T* p) {
    T kept = a < p[0] ? p[0] : a, d = x - y;
    T some = (log_of(kept) + d * d / kept) * T(0.5);
    if constexpr (full) return some + T(0.91893853320467274178);  // log(2 pi) / 2
    return some;
  }
  template <class T>
  static PG_HD T slope(T x, T y, T a, const T* p) {
    return (x - y) / (a < p[0] ? p[0] : a);
  }
};
struct HingeLoss {
  template <class T>
  static PG_HD T value(T x, T y, T, const T*) {
    T short_of = T(1) - x * y;
    return short_of < T(0) ? T(0) : short_of;
  }
  template <class T>
  static PG_HD T slope(T x, T y, T, const T*) {
    return T(1) - x * y < T(0) ? T(0) : -y;
  }
};
struct SoftMarginLoss {
  template <class T>
  static PG_HD T value(T x, T y, T, const T*) {
    return softplus_of(-(x * y));
  }
  template <class T>
  static PG_HD T slope(T x, T y, T, const T*) {
    return -y * sigmoid_of(-(x * y));
  }
};
// p: margin. Targets that are neither 1 nor -1 have both costs.
struct HingeEmbeddingLoss {
  template <class T>
  static PG_HD T value(T x, T y, T, const T* p) {
    T gap = p[0] - x, apart = gap < T(0) ? T(0) : gap;
    return (y == T(1) ? T(0) : apart) + (y == T(-1) ? T(0) : x);
  }
  template <class T>
  static PG_HD T slope(T x, T y, T, const T* p) {
    T apart = p[0] - x < T(0) ? T(0) : T(-1);
    return (y == T(1) ? T(0) : apart) + (y == T(-1) ? T(0) : T(1));
  }
};

// X(name, functor): an operator's form. Which operator and attributes choose it: find_loss.
// clang-format off
#define PG_MATH_LOSS(X) \
  X(Mse, MseLoss) X(L1, L1Loss) X(Huber, HuberLoss) X(SmoothL1, SmoothL1Loss) X(Bce, BceLoss) \
  X(BceLogits, BceLogitsLoss) X(BceLogitsWeighed, BceLogitsWeighedLoss) X(KlDiv, KlDivLoss) X(KlDivLog, KlDivLogLoss) \
  X(PoissonLog, PoissonNllLogLoss<false>) X(PoissonLogFull, PoissonNllLogLoss<true>) \
  X(Poisson, PoissonNllLoss<false>) X(PoissonFull, PoissonNllLoss<true>) \
  X(Gaussian, GaussianNllLoss<false>) X(GaussianFull, GaussianNllLoss<true>) X(Hinge, HingeLoss) \
  X(SoftMargin, SoftMarginLoss) X(HingeEmbedding, HingeEmbeddingLoss)
// clang-format on

}  // namespace pg::math
