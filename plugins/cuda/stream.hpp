// SPDX-License-Identifier: Apache-2.0
// A stream as the plugin keeps it. The host's handle is its address.
#pragma once

#include <atomic>
#include <mutex>

#include "fault.hpp"
#include "runtime.hpp"

namespace cuda {

struct Plan;

struct Stream {
  uint32_t device = 0;
  cudaStream_t native = nullptr;
  FaultRecord* own_faults = nullptr;  // device memory
  FaultRecord* faults = nullptr;      // where kernels note: its own, or those of the plan that is being captured
  // Whether a kernel that can fault was ever launched. Never reset: a synchronisation on another thread could not tell
  // a launch that is about to happen from one that has.
  std::atomic<bool> may_fault{false};
  FaultRecord* seen = nullptr;          // pinned memory: what a synchronisation reads
  std::mutex mutex;                     // of `seen`, and of beginning and ending a capture
  std::atomic<Plan*> capture{nullptr};  // what is being captured
  bool could_fault = false;             // may_fault before the capture, which counts for the plan

  // Throws while a plan is captured. The capture goes on.
  void refuse_capture(const char* what, const char* why) const {
    if (capture.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
      pg::fail(PG_E_FAILED_PRECONDITION, pg::format("%s cannot be captured: %s", what, why));
  }

  // For kernels that can; the tensor of indices gives the positions in the message.
  FaultSite fault_site(FaultKind kind, uint64_t sequence, int64_t limit, const pg_tensor& positions) {
    may_fault.store(true, std::memory_order_relaxed);
    FaultSite site;
    site.record = faults;
    site.sequence = sequence;
    site.kind = kind;
    site.limit = limit;
    site.rank = positions.rank;
    for (uint32_t i = 0; i < positions.rank; i++) site.shape[i] = positions.shape[i];
    return site;
  }
};

inline Stream& stream_of(uint64_t handle) { return *reinterpret_cast<Stream*>(handle); }

}  // namespace cuda
