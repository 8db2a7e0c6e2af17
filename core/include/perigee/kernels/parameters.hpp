// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/parameters.hpp: which attributes of an elementwise operator its functor in math.hpp reads as p[0],
// p[1], p[2], once for all devices.
#pragma once

#include <cmath>
#include <cstring>

#include "perigee/kernel.hpp"
#include "perigee/kernels/basic_math.hpp"

namespace pg::math {

struct ParameterNames {
  const char* op;
  const char* name[kMaxParameters];
};

inline constexpr ParameterNames kParameterNames[] = {
    {"clamp", {"min", "max"}},
    {"leaky_relu", {"negative_slope"}},
    {"elu", {"alpha"}},
    {"celu", {"alpha"}},
    {"hardtanh", {"min_val", "max_val"}},
    {"hardshrink", {"lambd"}},
    {"softshrink", {"lambd"}},
    {"threshold", {"threshold", "value"}},
    {"softplus", {"beta", "threshold"}},
    {"logit", {"eps"}},
    {"polygamma", {"n"}},
    {"round", {"decimals"}},
    {"nan_to_num", {"nan", "posinf", "neginf"}},
    {"addcmul", {"value"}},
    {"addcdiv", {"value"}},
    {"leaky_relu_grad", {"negative_slope"}},
    {"elu_grad", {"alpha", "scale", "input_scale"}},
    {"hardtanh_grad", {"min_val", "max_val"}},
    {"softplus_grad", {"beta", "threshold"}},
};

// NULL: the operator has none.
inline const ParameterNames* parameter_names(const char* op) {
  for (const ParameterNames& row : kParameterNames) {
    if (std::strcmp(row.op, op) == 0) return &row;
  }
  return nullptr;
}

inline double largest_of(uint32_t dtype) {
  switch (dtype) {
    case PG_F64: return 1.7976931348623157e308;
    case PG_F32: return 3.4028234663852886e38;
    case PG_BF16: return 3.3895313892515355e38;
    case PG_F16: return 65504;
    default: return INFINITY;
  }
}

// What an attribute's value means for a tensor's dtype: nan_to_num's infinities become, by default (NaN), the ends of
// the dtype.
inline double parameter_value(const char* name, uint32_t dtype, double value) {
  if (value == value) return value;
  if (std::strcmp(name, "posinf") == 0) return largest_of(dtype);
  if (std::strcmp(name, "neginf") == 0) return -largest_of(dtype);
  return value;
}

// The parameters of a prepared call: found at prepare, read at launch.
class Parameters {
 public:
  Parameters() = default;
  Parameters(const KernelCall& call, uint32_t dtype) : names_(parameter_names(call.op())), dtype_(dtype) {
    for (; names_ != nullptr && count_ < kMaxParameters && names_->name[count_] != nullptr; count_++)
      value_[count_] = call.runtime<double>(names_->name[count_]);
  }
  int count() const { return count_; }
  double operator()(const pg_launch& launch, int i) const {
    return parameter_value(names_->name[i], dtype_, value_[i](launch));
  }

 private:
  const ParameterNames* names_ = nullptr;
  uint32_t dtype_ = 0;
  int count_ = 0;
  Runtime<double> value_[kMaxParameters];
};

}  // namespace pg::math
