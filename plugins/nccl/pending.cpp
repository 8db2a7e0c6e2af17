// SPDX-License-Identifier: Apache-2.0
#include "pending.hpp"

namespace nccl {

Clock::time_point late_after(double seconds) {
  if (!(seconds > 0) || seconds > 1e9) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

cudaEvent_t EventPool::take() {
  if (!free_.empty()) {
    cudaEvent_t event = free_.back();
    free_.pop_back();
    return event;
  }
  cudaEvent_t event = nullptr;
  check(library().cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return event;
}

void EventPool::destroy() {
  for (cudaEvent_t event : free_) (void)library().cudaEventDestroy(event);
  free_.clear();
}

bool is_passed(cudaEvent_t event) {
  const cudaError_t status = library().cudaEventQuery(event);
  if (status == cudaErrorNotReady) {
    (void)library().cudaGetLastError();
    return false;
  }
  check(status, "cudaEventQuery");
  return true;
}

}  // namespace nccl
