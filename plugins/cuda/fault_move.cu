// SPDX-License-Identifier: Apache-2.0
// One kernel, so that a fault is read and cleared at one point of the stream: a launch from another thread falls before
// it or after it, never between the two.
#include "fault_host.hpp"
#include "launch.hpp"

namespace cuda {
namespace {

__global__ void move(FaultRecord* target, FaultRecord* source, uint32_t how, uint64_t sequence) {
  if (threadIdx.x != 0) return;
  bool noted = source->kind != 0;
  if ((how & kFaultReplace) != 0 || (noted && target->kind == 0)) {
    *target = *source;
    target->lock = 0;
    target->sequence += sequence;
  }
  if (noted && (how & kFaultClear) != 0) *source = FaultRecord{};
}

}  // namespace

void move_fault(cudaStream_t stream, FaultRecord* target, FaultRecord* source, uint32_t how, uint64_t sequence) {
  Grid one;
  one.threads = 1;
  launch(stream, one, move, target, source, how, sequence);
}

}  // namespace cuda
