// SPDX-License-Identifier: Apache-2.0
// What batch_norm and layer_norm share.
#pragma once

#include "kernel.hpp"
#include "reduce_shape.hpp"

namespace cuda {

// A vector of floats of any dtype; absent: `at` is NULL.
struct AnyVector {
  char* at = nullptr;
  uint32_t dtype = 0;
  int64_t stride = 1;
};

inline uint32_t statistics_dtype(uint32_t dtype) { return dtype == PG_F64 ? PG_F64 : PG_F32; }

// Input i of a call as such a vector, without its address; more than one axis must be dense.
inline AnyVector vector_of(const pg_tensor& t) {
  AnyVector v;
  v.dtype = pg::dtype_of(t);
  if (t.rank == 1) v.stride = t.stride[0];
  return v;
}

// Inputs first .. last may have the dtype of x or of its statistics; results are dense.
void require_norm_dtypes(const pg::KernelCall& call, uint32_t x, uint32_t first, uint32_t last);

// The sums of a normalisation's gradient, of dy and of dy xh with xh = (x - mean) invstd, by result: by channel
// (batch_norm: mean and invstd belong to results) or by place within a row (layer_norm: to the elements of one).
struct NormGrad {
  AnyVector mean, invstd, weight;
  bool by_place = false, training = false;
  double count = 0;          // elements of a channel
  AnyVector dweight, dbias;  // sums of dy xh, of dy; may be absent
  void* terms = nullptr;     // Terms of each channel, for dx; or absent
};

// y = scale (x - center) + shift + slope dy, in the compute type of x.
template <class C>
struct alignas(16) Terms {
  C center, scale, shift, slope;
};
constexpr uint64_t kTermBytes = sizeof(Terms<double>);

// operands: dy and x.
void reduce_norm_grad(const Launch& launch, uint32_t dtype, const ReduceShape<2>& shape, const NormGrad& grad,
                      const void* const* operands, void* workspace);

}  // namespace cuda
