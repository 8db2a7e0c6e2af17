// SPDX-License-Identifier: Apache-2.0
// A stream as the plugin keeps it. The host's handle is its address.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "fault.hpp"
#include "fault_watch.hpp"
#include "runtime.hpp"

namespace cuda {

struct Plan;

struct Stream {
  uint32_t device = 0;
  cudaStream_t native = nullptr;
  FaultRecord* own_faults = nullptr;  // device memory
  FaultRecord* faults = nullptr;      // where kernels note: its own, or those of the plan that is being captured
  std::shared_ptr<FaultWatch> watch = std::make_shared<FaultWatch>();  // events that were recorded here share it
  FaultRecord* seen = nullptr;                                         // pinned memory: what a synchronisation reads
  std::mutex mutex;                     // of `seen`, and of beginning and ending a capture
  std::atomic<Plan*> capture{nullptr};  // what is being captured
  bool captured_faulty = false;         // it has a kernel that can fault

  bool is_capturing() const { return capture.load(std::memory_order_relaxed) != nullptr; }
  // Throws while a plan is captured. The capture goes on.
  void refuse_capture(const char* what, const char* why) const {
    if (is_capturing()) [[unlikely]]
      pg::fail(PG_E_FAILED_PRECONDITION, pg::format("%s cannot be captured: %s", what, why));
  }

  // For kernels that can, which the caller watches (FaultWatch) or notes as captured; the tensor of indices gives the
  // positions in the message.
  FaultSite fault_site(FaultKind kind, uint64_t sequence, int64_t limit, const pg_tensor& positions) const {
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
