// SPDX-License-Identifier: Apache-2.0
// An event as the plugin keeps it: it carries the fault that its stream had noted when it was recorded, so that whoever
// waits for it learns of that. The host's handle is its address.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "fault.hpp"
#include "fault_watch.hpp"
#include "runtime.hpp"
#include "slots.hpp"

namespace cuda {

struct Event {
  uint32_t device = 0;
  cudaEvent_t native = nullptr;
  FaultRecord* faults = nullptr;       // pinned memory, written and read by kernels
  std::atomic<bool> may_fault{false};  // `faults` is written before the event passes
  // Of the stream it was recorded on: whoever waits for it without a fault has seen the first `watched` launches.
  std::shared_ptr<FaultWatch> watch;
  uint64_t watched = 0;
  std::mutex mutex;                 // of `readers` and `watch`
  std::vector<OwnedEvent> readers;  // pass when streams that waited have read `faults`

  // Whether no kernel will touch `faults` any more.
  bool is_idle() const { return !may_fault || (has_passed(native) && have_passed(readers)); }
};

inline Event& event_of(uint64_t handle) { return *reinterpret_cast<Event*>(handle); }

}  // namespace cuda
