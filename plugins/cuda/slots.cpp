// SPDX-License-Identifier: Apache-2.0
#include "slots.hpp"

#include "runtime.hpp"

namespace cuda {

Slots::~Slots() {
  for (FaultRecord* slab : slabs_) PG_CUDA_WARN(cudaFreeHost(slab));
}

FaultRecord* Slots::take() {
  std::lock_guard lock(mutex_);
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

}  // namespace cuda
