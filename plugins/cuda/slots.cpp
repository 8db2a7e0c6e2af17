// SPDX-License-Identifier: Apache-2.0
#include "slots.hpp"

#include <algorithm>

namespace cuda {

bool has_passed(cudaEvent_t event) noexcept {
  cudaError_t status = PG_CUDA_STATUS(cudaEventQuery(event));
  if (status == cudaSuccess) return true;
  (void)cudaGetLastError();
  if (status == cudaErrorNotReady) return false;
  if (!is_sticky(status)) warn_runtime(status, "cudaEventQuery");  // a loss is told by the lost device's own calls
  return true;
}

bool have_passed(const std::vector<OwnedEvent>& events) noexcept {
  return std::all_of(events.begin(), events.end(), [](const OwnedEvent& event) { return has_passed(event.get()); });
}

Slots::~Slots() {
  for (FaultRecord* slab : slabs_) PG_CUDA_WARN(cudaFreeHost(slab));
}

FaultRecord* Slots::take() {
  std::lock_guard lock(mutex_);
  std::erase_if(retired_, [&](const Retired& retired) {
    if (!have_passed(retired.until)) return false;
    free_.push_back(retired.slot);
    return true;
  });
  if (free_.empty()) {
    // Room first: giving a slot back must not fail.
    slabs_.reserve(slabs_.size() + 1);
    free_.reserve((slabs_.size() + 1) * kSlab);
    void* memory = nullptr;
    PG_CUDA(cudaHostAlloc(&memory, kSlab * sizeof(FaultRecord), cudaHostAllocPortable));
    slabs_.push_back(static_cast<FaultRecord*>(memory));
    for (int i = kSlab; i-- > 0;) free_.push_back(slabs_.back() + i);
  }
  FaultRecord* slot = free_.back();
  free_.pop_back();
  *slot = FaultRecord{};
  return slot;
}

void Slots::give(FaultRecord* slot) noexcept {
  std::lock_guard lock(mutex_);
  free_.push_back(slot);
}

void Slots::retire(FaultRecord* slot, std::vector<OwnedEvent> until) {
  std::lock_guard lock(mutex_);
  retired_.push_back({slot, std::move(until)});
}

}  // namespace cuda
