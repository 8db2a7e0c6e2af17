// SPDX-License-Identifier: Apache-2.0
// Looking at indices without doing anything with them, where nothing else would find those out of range.
#pragma once

#include "index_operand.hpp"
#include "kernel.hpp"

namespace cuda {

// "token" in the messages of embeddings, "index" in those of others.
inline FaultKind index_fault(const pg::KernelCall& call) {
  return call.is("embedding") || call.is("embedding_grad") ? FaultKind::kToken : FaultKind::kIndex;
}

// For results without elements, and for gradients that only compare with indices. In index_select.cu.
void check_indices(const Launch& launch, const IndexOperand& index, const FaultSite& site);

}  // namespace cuda
