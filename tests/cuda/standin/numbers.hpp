// SPDX-License-Identifier: Apache-2.0
// The tests' side of the stand-ins for cuBLASLt and cuDNN, and numbers as both compute with them.
#pragma once

#include <cublasLt.h>
#include <cudnn.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "perigee/kernels/float16.hpp"

namespace standin {

// From now on heuristics find nothing: for addresses of less alignment than `bytes` (1: for none, INT_MAX: for all).
void refuse_products_below(uint32_t bytes);
void refuse_epilogues(bool refuse);  // of products
void refuse_graphs(bool refuse);     // of cuDNN

enum class Number { kNone, kF32, kF64, kF16, kBf16, kI32, kB8 };

inline int64_t number_bytes(Number type) {
  switch (type) {
    case Number::kNone: return 0;
    case Number::kB8: return 1;
    case Number::kF64: return 8;
    case Number::kF32:
    case Number::kI32: return 4;
    default: return 2;
  }
}

inline double read_number(Number type, const void* data, int64_t i) {
  switch (type) {
    case Number::kF32: return static_cast<const float*>(data)[i];
    case Number::kF64: return static_cast<const double*>(data)[i];
    case Number::kF16: return pg::to_float(static_cast<const pg::f16*>(data)[i]);
    case Number::kBf16: return pg::to_float(static_cast<const pg::bf16*>(data)[i]);
    default: return std::nan("");
  }
}

inline void write_number(Number type, void* data, int64_t i, double value) {
  switch (type) {
    case Number::kF32: static_cast<float*>(data)[i] = static_cast<float>(value); break;
    case Number::kF64: static_cast<double*>(data)[i] = value; break;
    case Number::kF16: static_cast<pg::f16*>(data)[i] = pg::to_f16(static_cast<float>(value)); break;
    case Number::kBf16: static_cast<pg::bf16*>(data)[i] = pg::to_bf16(static_cast<float>(value)); break;
    default: break;
  }
}

// A sum as the hardware keeps it: float32, or float64 for float64.
class Sum {
 public:
  explicit Sum(bool wide) : wide_(wide) {}
  void add_product(double a, double b) {
    if (wide_)
      value_ = std::fma(a, b, value_);
    else
      value_ = std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(value_));
  }
  double value() const { return value_; }

 private:
  bool wide_;
  double value_ = 0;
};

inline bool is_aligned(const void* address, uint64_t bytes) {
  return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}

}  // namespace standin
