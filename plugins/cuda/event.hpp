// SPDX-License-Identifier: Apache-2.0
// An event as the plugin keeps it: it carries the fault that its stream had noted when it was recorded, so that whoever
// waits for it learns of that. The host's handle is its address.
#pragma once

#include <atomic>

#include "fault.hpp"
#include "runtime.hpp"

namespace cuda {

struct Event {
  uint32_t device = 0;
  cudaEvent_t native = nullptr;
  FaultRecord* faults = nullptr;       // pinned memory
  std::atomic<bool> may_fault{false};  // `faults` is written before the event passes
};

inline Event& event_of(uint64_t handle) { return *reinterpret_cast<Event*>(handle); }

}  // namespace cuda
