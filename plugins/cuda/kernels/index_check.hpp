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

// The axis that messages name, from 1; 0 where there is none to name.
inline uint32_t named_axis(const pg::KernelCall& call, uint32_t axis) {
  if (index_fault(call) == FaultKind::kToken) return 0;
  auto shown = call.is("index_select") ? call.attr<int64_t>("shown") : 0;
  return shown > 0 ? static_cast<uint32_t>(shown) : axis + 1;
}

// For results without elements, and for gradients that only compare with indices. In index_select.cu.
void check_indices(const Launch& launch, const IndexOperand& index, const FaultSite& site);

}  // namespace cuda
