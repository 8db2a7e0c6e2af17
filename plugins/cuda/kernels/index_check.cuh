// SPDX-License-Identifier: Apache-2.0
// Looking at indices without doing anything with them, where nothing else would see all of them.
#pragma once

#include "index_operand.hpp"
#include "kernel.hpp"

namespace cuda {

// "token" in the messages of embeddings, "index" in those of others.
inline FaultKind index_fault(const pg::KernelCall& call) {
  return call.is("embedding") || call.is("embedding_grad") ? FaultKind::kToken : FaultKind::kIndex;
}

// In a kernel: indices first, first + step, ...
static __device__ __forceinline__ void check_from(int64_t first, int64_t step, const IndexOperand& index,
                                                  const FaultSite& site) {
  for (int64_t i = first; i < index.walk.count; i += step) {
    int64_t value = index[i];
    if (is_outside(value, site.limit)) note_fault(site, value, i);
  }
}

// On its own, for results without elements. In index_select.cu.
void check_indices(const Launch& launch, const IndexOperand& index, const FaultSite& site);

}  // namespace cuda
