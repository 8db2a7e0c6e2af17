// SPDX-License-Identifier: Apache-2.0
// Calls of the interface in NCCL's terms.
#pragma once

#include "library.hpp"
#include "perigee/device_collectives.hpp"

namespace nccl {

// PG_E_NOT_SUPPORTED for what NCCL lacks, by name.
void refuse_unknown(const pg_collective& call, size_t members);

// One member's part of a call, between ncclGroupStart and ncclGroupEnd. `input` and `output` are addresses; `spare` is
// some memory of the member's device, for barriers.
void begin_call(const pg_collective& call, ncclComm_t comm, cudaStream_t stream, size_t member, size_t members,
                const void* input, void* output, void* spare);

}  // namespace nccl
