// SPDX-License-Identifier: Apache-2.0
// An index tensor of any integer dtype and any strides, as kernels read it.
#pragma once

#include "dtypes.hpp"
#include "perigee/kernel.hpp"
#include "walk.hpp"

namespace cuda {

inline bool is_index(const pg_tensor& t) {
  uint32_t dtype = pg::dtype_of(t);
  return pg::dtype_class(dtype) == PG_M_INT;
}
inline void check_index(const pg::KernelCall& call, uint32_t i) {
  if (!is_index(call.in(i))) {
    pg::fail_support(pg::format("%s: %s is no index", call.op(), pg::dtype_name(pg::dtype_of(call.in(i)))));
  }
}

PG_HD int64_t load_index(const void* data, uint32_t dtype, int64_t at) {
  switch (dtype) {
    case PG_I64: return static_cast<const int64_t*>(data)[at];
    case PG_I32: return static_cast<const int32_t*>(data)[at];
    case PG_I16: return static_cast<const int16_t*>(data)[at];
    case PG_I8: return static_cast<const int8_t*>(data)[at];
    default: return static_cast<const uint8_t*>(data)[at];
  }
}

struct IndexOperand {
  const void* data = nullptr;  // set at launch
  uint32_t dtype = PG_I64;
  bool linear = true;
  Walk<1> walk;

  IndexOperand() = default;
  explicit IndexOperand(const pg_tensor& t) : dtype(pg::dtype_of(t)), walk(walk_of(t)) { linear = walk.linear(0); }
  int64_t count() const { return walk.count; }
  // The i-th in row-major order.
  PG_HD int64_t operator[](int64_t i) const { return load_index(data, dtype, linear ? i : walk.offset(i)); }
};

// Whether an index lies outside [0, limit).
PG_HD bool is_outside(int64_t index, int64_t limit) {
  return static_cast<uint64_t>(index) >= static_cast<uint64_t>(limit);
}

}  // namespace cuda
