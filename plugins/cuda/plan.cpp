// SPDX-License-Identifier: Apache-2.0
// Capture: the device's entries that record a stream's work as a plan and launch it.
//
// The mode is relaxed, so that other threads, and this one between two launches, may go on allocating. What a capture
// cannot hold, CUDA refuses at the call; it then gives up the whole capture, which capture_end reports.
#include "plan.hpp"

#include "activity.hpp"
#include "device.hpp"
#include "fault_host.hpp"

namespace cuda {
namespace {

void destroy(std::unique_ptr<Plan> plan) {
  if (plan->graph != nullptr) PG_CUDA_WARN(cudaGraphExecDestroy(plan->graph));
  if (plan->handed != nullptr) PG_CUDA_WARN(cudaEventDestroy(plan->handed));
  PG_CUDA_WARN(cudaFree(plan->faults));
}

// Takes the stream out of its capture. The graph is NULL when the capture was given up.
cudaError_t end_capture(Stream& stream, cudaGraph_t* graph, std::unique_ptr<Plan>& plan) {
  std::lock_guard lock(stream.mutex);
  plan.reset(stream.capture.exchange(nullptr));
  plan->may_fault = stream.captured_faulty;
  stream.faults = stream.own_faults;
  return PG_CUDA_STATUS(cudaStreamEndCapture(stream.native, graph));
}

}  // namespace

void Device::capture_begin(uint32_t device, uint64_t handle) {
  Stream& stream = enter(device, handle);
  std::lock_guard lock(stream.mutex);
  stream.refuse_capture("capture_begin", "the stream is being captured already");
  auto plan = std::make_unique<Plan>();
  plan->device = device;
  void* record = nullptr;
  PG_CUDA(cudaMalloc(&record, sizeof(FaultRecord)));
  plan->faults = static_cast<FaultRecord*>(record);
  try {
    PG_CUDA(cudaMemsetAsync(record, 0, sizeof(FaultRecord), stream.native));
    PG_CUDA(cudaStreamSynchronize(stream.native));  // the plan may be launched on another stream
    PG_CUDA(cudaStreamBeginCapture(stream.native, cudaStreamCaptureModeRelaxed));
  } catch (...) {
    destroy(std::move(plan));
    throw;
  }
  stream.captured_faulty = false;
  stream.faults = plan->faults;
  stream.capture = plan.release();
}

uint64_t Device::capture_end(uint32_t device, uint64_t handle) {
  Stream& stream = enter(device, handle);
  if (stream.capture.load() == nullptr) pg::fail(PG_E_FAILED_PRECONDITION, "the stream is not being captured");
  std::unique_ptr<Plan> plan;
  cudaGraph_t graph = nullptr;
  cudaError_t status = end_capture(stream, &graph, plan);
  const char* call = "cudaStreamEndCapture";
  if (status == cudaSuccess) {
    call = "cudaGraphInstantiate";
    status = PG_CUDA_STATUS(cudaGraphInstantiate(&plan->graph, graph, 0));
    PG_CUDA_WARN(cudaGraphDestroy(graph));
  }
  if (status == cudaSuccess && plan->may_fault) {
    call = "cudaEventCreateWithFlags";
    status = PG_CUDA_STATUS(cudaEventCreateWithFlags(&plan->handed, cudaEventDisableTiming));
  }
  if (status != cudaSuccess) {
    destroy(std::move(plan));
    if (is_sticky(status)) fail_runtime(status, call);
    std::string text = describe_runtime(status, call);
    (void)cudaGetLastError();
    throw pg::Error(PG_E_FAILED_PRECONDITION,
                    "something that was launched cannot be captured: " + text + "; the stream is usable again",
                    static_cast<int64_t>(status));
  }
  alive_++;
  return reinterpret_cast<uint64_t>(plan.release());
}

// For a stream that is destroyed in the middle.
void Device::drop_capture(Stream& stream) {
  if (stream.capture.load() == nullptr) return;
  std::unique_ptr<Plan> plan;
  cudaGraph_t graph = nullptr;
  PG_CUDA_WARN(end_capture(stream, &graph, plan));
  if (graph != nullptr) PG_CUDA_WARN(cudaGraphDestroy(graph));
  destroy(std::move(plan));
}

void Device::plan_launch(uint32_t device, uint64_t handle, pg::Ticket ticket) {
  if (handle == 0) pg::fail_argument("no plan");
  Plan& plan = plan_of(handle);
  if (plan.device != device) {
    pg::fail_argument(pg::format("the plan belongs to cuda:%u, the call is for cuda:%u", plan.device, device));
  }
  Stream& stream = enter(device, ticket.stream);
  stream.refuse_capture("plan_launch", "a plan holds no other plan");
  TimedWork timed(stream, PG_ACTIVITY_KERNEL, ticket);
  if (!plan.may_fault) {
    PG_CUDA(cudaGraphLaunch(plan.graph, stream.native));
    return;
  }
  // CUDA runs the launches of one graph one after the other, whichever streams they are on; what hands their faults on
  // is no part of the graph, and the next launch waits for it.
  std::lock_guard lock(plan.mutex);
  PG_CUDA(cudaStreamWaitEvent(stream.native, plan.handed, 0));  // of an event never recorded: nothing
  PG_CUDA(cudaGraphLaunch(plan.graph, stream.native));
  FaultWatched watched(*stream.watch);
  move_fault(stream.native, stream.own_faults, plan.faults, kFaultClear, ticket.sequence);
  PG_CUDA(cudaEventRecord(plan.handed, stream.native));
}

void Device::plan_destroy(uint32_t device, uint64_t handle) {
  if (handle == 0) pg::fail_argument("no plan");
  use_device(device);
  destroy(std::unique_ptr<Plan>(&plan_of(handle)));
  alive_--;
}

}  // namespace cuda
