// SPDX-License-Identifier: Apache-2.0
// A stream as the plugin keeps it. The host's handle is its address.
#pragma once

#include "fault.hpp"
#include "runtime.hpp"

namespace cuda {

struct Stream {
  uint32_t device = 0;
  cudaStream_t native = nullptr;
  FaultRecord* faults = nullptr;  // device memory
  bool may_fault = false;         // a kernel that can fault was launched since the record was last read

  // For kernels that can; the tensor of indices gives the positions in the message.
  FaultSite fault_site(FaultKind kind, uint64_t sequence, int64_t limit, const pg_tensor& positions) {
    may_fault = true;
    FaultSite site;
    site.record = faults;
    site.sequence = sequence;
    site.kind = kind;
    site.limit = limit;
    site.rank = positions.rank;
    for (uint32_t i = 0; i < positions.rank; i++) site.shape[i] = positions.shape[i];
    return site;
  }
};

inline Stream& stream_of(uint64_t handle) { return *reinterpret_cast<Stream*>(handle); }

}  // namespace cuda
