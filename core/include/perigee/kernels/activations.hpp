// SPDX-License-Identifier: Apache-2.0
// The scalar arithmetic of activations, and of their slopes: f(x, p) and, behind it, d * f'(x). Comparisons are written
// so that NaN stays NaN, and without branches, so that loops vectorise.
#pragma once

#include "perigee/kernels/basic_math.hpp"

namespace pg::math {

// ---- forward; `p` are the operator's parameters (parameters.hpp) ----

struct Relu {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return x < T(0) ? T(0) : x;
  }
};
struct Relu6 {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    T low = x < T(0) ? T(0) : x;
    return low > T(6) ? T(6) : low;
  }
};
// p: min, max
struct Hardtanh {
  template <class T>
  PG_HD T operator()(T x, const T* p) const {
    T low = x < p[0] ? p[0] : x;
    return low > p[1] ? p[1] : low;
  }
};
// p: threshold, value
struct Threshold {
  template <class T>
  PG_HD T operator()(T x, const T* p) const {
    return x <= p[0] ? p[1] : x;
  }
};
struct Sigmoid {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return sigmoid_of(x);
  }
};
struct Silu {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return x / (T(1) + exp_of(-x));
  }
};
// x times the normal distribution function.
struct Gelu {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return T(0.5) * x * (T(1) + erf_of(x * T(0.70710678118654752440)));
  }
};
struct GeluTanh {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
    return T(0.5) * x * (T(1) + tanh_of(inner));
  }
};
// p: beta, threshold. log(1 + e^z) is z + log(1 + e^-z).
struct Softplus {
  template <class T>
  PG_HD T operator()(T x, const T* p) const {
    T z = x * p[0];
    T soft = ((z < T(0) ? T(0) : z) + log1p_exp_of(-std::fabs(z))) / p[0];
    return z > p[1] ? x : soft;
  }
};
struct LogSigmoid {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return (x < T(0) ? x : T(0)) - log1p_exp_of(-std::fabs(x));
  }
};
// p: negative_slope
struct LeakyRelu {
  template <class T>
  PG_HD T operator()(T x, const T* p) const {
    return x < T(0) ? x * p[0] : x;
  }
};
// p: alpha
struct Elu {
  template <class T>
  PG_HD T operator()(T x, const T* p) const {
    T negative = p[0] * expm1_of(x > T(0) ? T(0) : x);
    return x > T(0) ? x : negative;
  }
};
// p: alpha
struct Celu {
  template <class T>
  PG_HD T operator()(T x, const T* p) const {
    T negative = p[0] * expm1_of((x > T(0) ? T(0) : x) / p[0]);
    return x > T(0) ? x : negative;
  }
};
struct Selu {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    T negative = T(1.67326324235437728481) * expm1_of(x > T(0) ? T(0) : x);
    return T(1.05070098735548049342) * (x > T(0) ? x : negative);
  }
};
// tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2); beyond 20 it is 1 in every precision.
template <class T>
PG_HD T tanh_softplus(T x) {
  T e = exp_of(x > T(20) ? T(20) : x);
  T n = e * (e + T(2));
  return n / (n + T(2));
}
struct Mish {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return x * tanh_softplus(x);
  }
};
struct Hardswish {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    T inside = x * (x + T(3)) / T(6);
    T low = x < T(-3) ? T(0) : inside;
    return x > T(3) ? x : low;
  }
};
struct Hardsigmoid {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    T low = x < T(-3) ? T(0) : (x + T(3)) / T(6);
    return x > T(3) ? T(1) : low;
  }
};
struct Softsign {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return x / (T(1) + (x < T(0) ? -x : x));
  }
};
struct Tanhshrink {
  template <class T>
  PG_HD T operator()(T x, const T*) const {
    return x - tanh_of(x);
  }
};
// p: lambd
struct Hardshrink {
  template <class T>
  PG_HD T operator()(T x, const T* p) const {
    return ((x >= -p[0]) & (x <= p[0])) ? T(0) : x;
  }
};
// p: lambd
struct Softshrink {
  template <class T>
  PG_HD T operator()(T x, const T* p) const {
    T low = x < -p[0] ? x + p[0] : x * T(0);
    return x > p[0] ? x - p[0] : low;
  }
};

// ---- slopes: d times the derivative at x (or, where that is all it needs, at the result y) ----

// Of y.
struct ReluGrad {
  template <class T>
  PG_HD T operator()(T y, T d, const T*) const {
    return y > T(0) ? d : T(0);
  }
};
// p: min, max. 0 at the bounds.
struct HardtanhGrad {
  template <class T>
  PG_HD T operator()(T x, T d, const T* p) const {
    return ((x <= p[0]) | (x >= p[1])) ? T(0) : d;
  }
};
// p: negative_slope
struct LeakyReluGrad {
  template <class T>
  PG_HD T operator()(T x, T d, const T* p) const {
    return x > T(0) ? d : d * p[0];
  }
};
// p: alpha, scale, input_scale: of scale * (x, or alpha * (exp(input_scale * x) - 1)).
struct EluGrad {
  template <class T>
  PG_HD T operator()(T x, T d, const T* p) const {
    T negative = p[0] * p[2] * exp_of((x > T(0) ? T(0) : x) * p[2]);
    return d * p[1] * (x > T(0) ? T(1) : negative);
  }
};
// Of y.
struct SigmoidGrad {
  template <class T>
  PG_HD T operator()(T y, T d, const T*) const {
    return d * (y * (T(1) - y));
  }
};
// Of y.
struct TanhGrad {
  template <class T>
  PG_HD T operator()(T y, T d, const T*) const {
    return d * (T(1) - y * y);
  }
};
struct SiluGrad {
  template <class T>
  PG_HD T operator()(T x, T d, const T*) const {
    T s = sigmoid_of(x);
    return d * (s * (T(1) + x * (T(1) - s)));
  }
};
struct GeluGrad {
  template <class T>
  PG_HD T operator()(T x, T d, const T*) const {
    T area = T(0.5) * (T(1) + erf_of(x * T(0.70710678118654752440)));
    return d * (area + x * exp_of(T(-0.5) * x * x) * T(0.39894228040143267794));
  }
};
struct GeluTanhGrad {
  template <class T>
  PG_HD T operator()(T x, T d, const T*) const {
    constexpr T k = T(0.79788456080286535588), cubic = T(0.044715);
    T t = tanh_of(k * (x + cubic * x * x * x)), inner = k * (T(1) + T(3) * cubic * x * x);
    return d * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * inner);
  }
};
// p: beta, threshold
struct SoftplusGrad {
  template <class T>
  PG_HD T operator()(T x, T d, const T* p) const {
    T z = x * p[0];
    return z > p[1] ? d : d * sigmoid_of(z);
  }
};
struct MishGrad {
  template <class T>
  PG_HD T operator()(T x, T d, const T*) const {
    T t = tanh_softplus(x);
    return d * (t + x * sigmoid_of(x) * (T(1) - t * t));
  }
};
struct HardswishGrad {
  template <class T>
  PG_HD T operator()(T x, T d, const T*) const {
    T low = x < T(-3) ? T(0) : d * ((x + x + T(3)) / T(6));
    return x > T(3) ? d : low;
  }
};

}  // namespace pg::math
