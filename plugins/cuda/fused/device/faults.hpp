// SPDX-License-Identifier: Apache-2.0
// What generated kernels note faults with, of several kinds in one launch.
#pragma once

#include "fault.hpp"

namespace cuda::fused {

template <FaultKind kind>
__device__ __forceinline__ void note_fault(FaultSite site, int64_t value, int64_t position) {
  site.kind = kind;
  cuda::note_fault(site, value, position);
}

}  // namespace cuda::fused
