// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/parameters.hpp: the parameters p[0], p[1], p[2] of the primitives in a call's scalar expression.
#pragma once

#include <cmath>
#include <cstring>

#include "perigee/kernels/basic_math.hpp"
#include "perigee/scalar.hpp"

namespace pg::math {

inline double largest_of(uint32_t dtype) {
  switch (dtype) {
    case PG_F64: return 1.7976931348623157e308;
    case PG_F32: return 3.4028234663852886e38;
    case PG_BF16: return 3.3895313892515355e38;
    case PG_F16: return 65504;
    default: return INFINITY;
  }
}

// What a parameter's value means for a tensor's dtype: what NanToNum puts for infinities is, by default (NaN), the ends
// of the dtype.
inline double parameter_value(Primitive primitive, int i, uint32_t dtype, double value) {
  if (value == value || primitive != pNanToNum || i == 0) return value;
  return i == 1 ? largest_of(dtype) : -largest_of(dtype);
}

// The parameters of a step of a prepared call: found at prepare, read at launch.
class Parameters {
 public:
  Parameters() = default;
  Parameters(const KernelCall& call, const ScalarStep& step, uint32_t dtype)
      : primitive_(step.primitive), dtype_(dtype), count_(step.parameters) {
    for (int i = 0; i < count_; i++) value_[i] = ScalarNumber(call, step.parameter[i]);
  }
  int count() const { return count_; }
  double operator()(const void* attrs, int i) const {
    return parameter_value(primitive_, i, dtype_, value_[i](attrs).real);
  }
  double operator()(const pg_launch& launch, int i) const { return (*this)(launch.attrs, i); }

 private:
  Primitive primitive_ = pAdd;
  uint32_t dtype_ = 0;
  int count_ = 0;
  ScalarNumber value_[kMaxParameters];
};

}  // namespace pg::math
