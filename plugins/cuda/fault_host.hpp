// SPDX-License-Identifier: Apache-2.0
// The host's side of fault records: moving them about on a stream, and what they say.
#pragma once

#include "fault.hpp"
#include "runtime.hpp"

namespace cuda {

constexpr uint32_t kFaultReplace = 1u;  // the target is overwritten even if it holds a fault, or the source holds none
constexpr uint32_t kFaultClear = 2u;    // the source is empty afterwards

// On the stream: puts the source's fault into the target, unless that already holds one. `sequence` is added to
// the source's: of a plan that is the number within it. Either may be device memory or pinned memory.
void move_fault(cudaStream_t stream, FaultRecord* target, FaultRecord* source, uint32_t how, uint64_t sequence = 0);

// What was noted, in the words of the cpu's kernels; `native` is the launch's sequence.
pg::Error fault_error(const FaultRecord& record);

}  // namespace cuda
