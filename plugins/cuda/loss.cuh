// SPDX-License-Identifier: Apache-2.0
// What both directions of the cross entropy read: targets and class weights.
#pragma once

#include "access.cuh"
#include "softmax.hpp"

namespace cuda {

// The class of a line, -1 where it does not count. `at`: offset of the line's target.
__device__ __forceinline__ int64_t class_of(const LossArguments& a, int64_t line, int64_t at, int64_t classes,
                                            bool note) {
  int64_t t = any_int(a.target_dtype, a.target + at * Access<AnyInt>::bytes(a.target_dtype));
  if (t == a.ignore) return -1;
  if (t >= 0 && t < classes) return t;
  if (note) note_fault(a.faults, t, line);
  return -1;
}

__device__ __forceinline__ double class_weight(const LossArguments& a, int64_t c) {
  if (a.weight == nullptr) return 1;
  return any_float(a.weight_dtype, a.weight + c * a.weight_stride * Access<AnyFloat>::bytes(a.weight_dtype));
}

}  // namespace cuda
