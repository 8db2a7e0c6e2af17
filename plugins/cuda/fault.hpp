// SPDX-License-Identifier: Apache-2.0
// What a kernel does about an index out of range: it notes the first in its stream's record, skips the element and goes
// on; the context stays whole. The record is read when the stream is synchronised, and becomes an error that names the
// operator.
#pragma once

#include <cstdint>

#include "perigee/plugin.h"

namespace cuda {

enum class FaultKind : int32_t { kNone, kIndex, kToken, kTarget, kClass, kDivisionByZero, kNegativePower, kTooMany };

// In device memory, one a stream, zero when nothing happened.
struct FaultRecord {
  uint32_t claimed;
  int32_t kind;       // FaultKind
  uint64_t sequence;  // of the launch
  int64_t value, limit;
  int64_t position;  // row-major, in the tensor of `shape`
  uint32_t rank, reserved;
  int64_t shape[PG_MAX_RANK];
};

// A kernel's parameter: where to note a fault, and what the message will need.
struct FaultSite {
  FaultRecord* record = nullptr;
  uint64_t sequence = 0;
  FaultKind kind = FaultKind::kNone;
  uint32_t rank = 0;
  int64_t limit = 0;
  int64_t shape[PG_MAX_RANK] = {};
};

#if defined(__CUDACC__) || defined(PERIGEE_CUDA_EMULATED)
static __device__ __noinline__ void note_fault(const FaultSite& site, int64_t value, int64_t position) {
  FaultRecord* record = site.record;
  if (atomicCAS(&record->claimed, 0u, 1u) != 0u) return;
  record->kind = static_cast<int32_t>(site.kind);
  record->sequence = site.sequence;
  record->value = value;
  record->limit = site.limit;
  record->position = position;
  record->rank = site.rank;
  for (uint32_t i = 0; i < site.rank; i++) record->shape[i] = site.shape[i];
}
#endif

}  // namespace cuda
