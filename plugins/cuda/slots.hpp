// SPDX-License-Identifier: Apache-2.0
// Fault records in pinned memory, which every device may write and the host reads. Few and small, so they are taken
// from slabs that stay until the plugin is closed.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "fault.hpp"
#include "runtime.hpp"

namespace cuda {

struct DestroyEvent {
  void operator()(cudaEvent_t event) const noexcept { PG_CUDA_WARN(cudaEventDestroy(event)); }
};
using OwnedEvent = std::unique_ptr<CUevent_st, DestroyEvent>;

// Whether the work before it is done; so it is where the device has failed, for nothing runs there any more.
bool has_passed(cudaEvent_t event) noexcept;
bool have_passed(const std::vector<OwnedEvent>& events) noexcept;

class Slots {
 public:
  ~Slots();
  FaultRecord* take();  // zeroed; a device must be current
  void give(FaultRecord* slot) noexcept;
  // Gives it back once all of these have passed: until then kernels may write to it or read it.
  void retire(FaultRecord* slot, std::vector<OwnedEvent> until);

 private:
  struct Retired {
    FaultRecord* slot;
    std::vector<OwnedEvent> until;
  };
  static constexpr int kSlab = 128;
  std::mutex mutex_;
  std::vector<FaultRecord*> free_, slabs_;
  std::vector<Retired> retired_;
};

}  // namespace cuda
