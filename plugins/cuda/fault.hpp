// SPDX-License-Identifier: Apache-2.0
// What a kernel does about an index out of range: it notes it in its stream's record, skips the element and goes on;
// the context stays whole. The record is read when the stream is synchronised, and becomes an error that names the
// operator. Of several faults the first launch's is kept, and of one launch the one with the lowest position, as on a
// processor.
#pragma once

#include <cstdint>

#include "perigee/plugin.h"

namespace cuda {

// A kind's message is in fault.cpp.
enum class FaultKind : int32_t {
  kNone,
  kIndex,           // `value` at `position` is not in [0, limit)
  kToken,           // as kIndex, in the words of embedding
  kTarget,          // ... of cross_entropy
  kClass,           // ... of one_hot
  kPlane,           // a pooling index is not in [0, limit)
  kDivisionByZero,  // of integers
  kNegativePower,   // of integers
  kTooMany,         // a mask selects more than there is
  kProbability,     // the double whose bits `value` is does not lie in [0, 1]
  kChance,          // ... of multinomial, is not finite and from 0; positions have a place more a row
  kTooFew,          // only `value` categories of a row are possible, not `limit`
  kInputLength,     // of ctc_loss: not in [0, limit]; positions count (sequence, 0, 1 or 2 + label)
  kTargetLength,    // ... of labels
  kLabel,           // ... of a label
  kBlank,           // a label is the blank
};

// In device memory, one a stream; events and plans have some too. Zero when nothing happened.
struct FaultRecord {
  uint32_t lock;
  int32_t kind;       // FaultKind
  uint64_t sequence;  // of the launch
  int64_t value, limit;
  int64_t position;     // row-major, in the tensor of `shape`
  uint32_t rank, axis;  // axis: whose index it is, from 1; 0 names none
  int64_t shape[PG_MAX_RANK];
};

// A kernel's parameter: where to note a fault, and what the message will need.
struct FaultSite {
  FaultRecord* record = nullptr;
  uint64_t sequence = 0;
  FaultKind kind = FaultKind::kNone;
  uint32_t rank = 0, axis = 0;
  int64_t limit = 0;
  int64_t shape[PG_MAX_RANK] = {};
};

#if defined(__CUDACC__) || defined(PERIGEE_CUDA_EMULATED)
[[maybe_unused]] static __device__ __noinline__ void note_fault(const FaultSite& site, int64_t value,
                                                                int64_t position) {
  volatile FaultRecord* record = site.record;
  // Without the lock it may be old news; then the second look decides.
  auto is_kept = [&] {
    if (record->kind == 0) return false;
    __threadfence();  // what was written before `kind` is read after it
    return record->sequence != site.sequence || record->position <= position;
  };
  for (bool done = is_kept(); !done;) {
    if (atomicCAS(&site.record->lock, 0u, 1u) != 0u) {
      done = is_kept();
      continue;
    }
    __threadfence();
    if (!is_kept()) {
      record->sequence = site.sequence;
      record->value = value;
      record->limit = site.limit;
      record->position = position;
      record->rank = site.rank;
      record->axis = site.axis;
      for (uint32_t i = 0; i < site.rank; i++) record->shape[i] = site.shape[i];
      __threadfence();
      record->kind = static_cast<int32_t>(site.kind);
    }
    __threadfence();
    atomicExch(&site.record->lock, 0u);
    done = true;
  }
}
#endif

}  // namespace cuda
