// SPDX-License-Identifier: Apache-2.0
// A plan: what was captured on a stream, as a CUDA graph. The host's handle is its address.
#pragma once

#include <mutex>

#include "fault.hpp"
#include "runtime.hpp"

namespace cuda {

struct Plan {
  uint32_t device = 0;
  cudaGraphExec_t graph = nullptr;  // nullptr while it is being captured
  // Device memory. Its kernels note faults here, whichever stream the plan runs on; each launch hands them on to its
  // stream, with the launch's own sequence added to theirs, which are numbers within the plan.
  FaultRecord* faults = nullptr;
  bool may_fault = false;
  std::mutex mutex;              // of launches that share `faults`
  cudaEvent_t handed = nullptr;  // passes when the last launch's fault has been handed on
};

inline Plan& plan_of(uint64_t handle) { return *reinterpret_cast<Plan*>(handle); }

}  // namespace cuda
