// SPDX-License-Identifier: Apache-2.0
// Looking at indices without doing anything with them, where nothing else would find those out of range.
#pragma once

#include "index_operand.hpp"
#include "kernel.hpp"
#include "perigee/kernels/out_of_range.hpp"

namespace cuda {

// The axis that messages name, from 1; 0 where there is none to name.
inline uint32_t named_axis(const pg::KernelCall& call, uint32_t axis) {
  auto shown = call.is("index_select") ? call.attr<int64_t>("shown") : 0;
  return static_cast<uint32_t>(pg::index_name(call.op(), axis, shown).axis);
}
// What has no axis to name are tokens.
inline FaultKind index_fault(const pg::KernelCall& call) {
  return named_axis(call, 0) == 0 ? FaultKind::kToken : FaultKind::kIndex;
}

// For results without elements, and for gradients that only compare with indices. In index_select.cu.
void check_indices(const Launch& launch, const IndexOperand& index, const FaultSite& site);

}  // namespace cuda
