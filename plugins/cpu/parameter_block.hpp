// SPDX-License-Identifier: Apache-2.0
// The parameters of a primitive, as the loops of kernels/simd want them: in the compute type, side by side.
#pragma once

#include "perigee/kernels/parameters.hpp"
#include "storage.hpp"

namespace cpu {

class ParameterBlock {
 public:
  ParameterBlock() = default;
  ParameterBlock(const pg::KernelCall& call, const pg::ScalarStep& step, uint32_t dtype)
      : parameters_(call, step, dtype), type_(kStorageOf[kComputeOf[storage_of(dtype)]]) {}

  struct Packed {
    alignas(8) char bytes[pg::math::kMaxParameters * 8] = {};
    bool any = false;
    const void* data() const { return any ? bytes : nullptr; }
  };
  Packed operator()(const pg_launch& launch) const {
    Packed packed;
    packed.any = parameters_.count() > 0;
    for (int i = 0; i < parameters_.count(); i++) put(parameters_(launch, i), packed.bytes + i * kStorageBytes[type_]);
    return packed;
  }

 private:
  // Infinite bounds become the ends of an integer type; what is no number is not looked at there.
  void put(double value, void* target) const {
    if (type_ != sI64 && type_ != sI32) return put_number(type_, value, target);
    int64_t low = type_ == sI64 ? INT64_MIN : INT32_MIN, high = type_ == sI64 ? INT64_MAX : INT32_MAX;
    int64_t whole = value >= static_cast<double>(high)  ? high
                    : value <= static_cast<double>(low) ? low
                    : value != value                    ? 0
                                                        : static_cast<int64_t>(value);
    auto narrow = static_cast<int32_t>(whole);
    std::memcpy(target, type_ == sI64 ? static_cast<void*>(&whole) : &narrow,
                static_cast<size_t>(kStorageBytes[type_]));
  }

  pg::math::Parameters parameters_;
  Storage type_ = sF32;
};

}  // namespace cpu
