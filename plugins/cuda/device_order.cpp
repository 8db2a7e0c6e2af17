// SPDX-License-Identifier: Apache-2.0
// Streams and events, and what they tell of failures.
//
// A fault (fault.hpp) is noted in the record of the stream that the kernel ran on. A synchronisation of the stream
// takes the record and throws what it holds. An event takes a copy along when it is recorded: event_sync throws that
// too, and a stream that waits for the event adopts it. Unlike on the simulated device, later work is not skipped.
//
// So event_record and stream_sync launch a kernel of one thread, which takes some microseconds, where a kernel that can
// fault was launched that nobody has waited for yet (fault_watch.hpp). Records in pinned memory that the host reads
// itself would save that too; but then an event would tell of launches behind it, and clearing a record would race with
// a kernel that notes into it.
//
// Events are made without timing, which all who record one would pay for; so there is no event_elapsed.
#include "device.hpp"
#include "event.hpp"
#include "fault_host.hpp"

namespace cuda {
namespace {

// What a synchronisation throws has no number of CUDA's in `native`: the host reads a launch's sequence there, and
// which launch it was CUDA does not tell.
void check_sync(cudaError_t status, const char* call) {
  try {
    if (!is_unloading(status)) check_runtime(status, call);
  } catch (pg::Error& error) {
    error.native = 0;
    throw;
  }
}

Event& event_on(uint32_t device, uint64_t handle) {
  use_device(device);
  if (handle == 0) pg::fail_argument("no event");
  return event_of(handle);
}

// An event may be recorded again as soon as it has been waited for, on any stream: what is under way with its last
// recording's fault keeps its slot, and the event goes on with another.
void renew(Event& event, Slots& slots) {
  std::lock_guard lock(event.mutex);
  if (!event.is_idle()) {
    cudaEvent_t native = nullptr;
    PG_CUDA(cudaEventCreateWithFlags(&native, cudaEventDisableTiming));
    OwnedEvent fresh(native);
    event.readers.reserve(event.readers.size() + 1);
    FaultRecord* slot = slots.take();
    event.readers.emplace_back(std::exchange(event.native, fresh.release()));
    slots.retire(std::exchange(event.faults, slot), std::move(event.readers));
  }
  event.readers.clear();
}

// The stream takes over the event's fault.
void adopt(Event& event, Stream& stream) {
  std::lock_guard lock(event.mutex);
  std::erase_if(event.readers, [](const OwnedEvent& reader) { return has_passed(reader.get()); });
  cudaEvent_t native = nullptr;
  PG_CUDA(cudaEventCreateWithFlags(&native, cudaEventDisableTiming));
  OwnedEvent reader(native);
  event.readers.push_back(std::move(reader));
  FaultWatched watched(*stream.watch);
  move_fault(stream.native, stream.own_faults, event.faults, 0);
  PG_CUDA(cudaEventRecord(native, stream.native));
}

// The fault that a passed event carries, or that its stream had none.
void look(Event& event) {
  if (!event.may_fault) return;
  if (event.faults->kind != 0) throw fault_error(*event.faults);
  std::lock_guard lock(event.mutex);
  event.watch->saw(event.watched);
}

}  // namespace

Stream& Device::enter(uint32_t device, uint64_t handle) {
  if (handle == 0) pg::fail_argument("no stream");
  Stream& stream = stream_of(handle);
  if (stream.device != device) {
    pg::fail_argument(pg::format("the stream belongs to cuda:%u, the call is for cuda:%u", stream.device, device));
  }
  use_device(device);
  return stream;
}

uint64_t Device::stream_create(uint32_t device) {
  use_device(device);
  auto stream = std::make_unique<Stream>();
  stream->device = device;
  PG_CUDA(cudaStreamCreateWithFlags(&stream->native, cudaStreamNonBlocking));
  try {
    void* record = nullptr;
    PG_CUDA(cudaMalloc(&record, sizeof(FaultRecord)));
    stream->own_faults = stream->faults = static_cast<FaultRecord*>(record);
    PG_CUDA(cudaMemsetAsync(record, 0, sizeof(FaultRecord), stream->native));
    stream->seen = slots_.take();
  } catch (...) {
    PG_CUDA_WARN(cudaFree(stream->own_faults));
    PG_CUDA_WARN(cudaStreamDestroy(stream->native));
    throw;
  }
  alive_++;
  return reinterpret_cast<uint64_t>(stream.release());
}

void Device::stream_destroy(uint32_t device, uint64_t handle) {
  std::unique_ptr<Stream> stream(&enter(device, handle));
  drop_capture(*stream);
  PG_CUDA_WARN(cudaStreamSynchronize(stream->native));
  PG_CUDA_WARN(cudaStreamDestroy(stream->native));
  PG_CUDA_WARN(cudaFree(stream->own_faults));
  slots_.give(stream->seen);
  alive_--;
}

void Device::stream_sync(uint32_t device, uint64_t handle) {
  Stream& stream = enter(device, handle);
  std::lock_guard lock(stream.mutex);  // another thread may be about to begin a capture, which this call would spoil
  stream.refuse_capture("synchronize", "nothing runs while a plan is captured");
  if (!stream.watch->is_pending()) {
    check_sync(PG_CUDA_STATUS(cudaStreamSynchronize(stream.native)), "cudaStreamSynchronize");
    return;
  }
  uint64_t enqueued = stream.watch->enqueued();
  try {
    move_fault(stream.native, stream.seen, stream.own_faults, kFaultReplace | kFaultClear);
  } catch (pg::Error& error) {
    if (is_unloading(static_cast<cudaError_t>(error.native))) return;
    error.native = 0;  // see check_sync
    throw;
  }
  check_sync(PG_CUDA_STATUS(cudaStreamSynchronize(stream.native)), "cudaStreamSynchronize");
  stream.watch->saw(enqueued);
  if (stream.seen->kind != 0) throw fault_error(*stream.seen);
}

uint64_t Device::event_create(uint32_t device) {
  use_device(device);
  auto event = std::make_unique<Event>();
  event->device = device;
  PG_CUDA(cudaEventCreateWithFlags(&event->native, cudaEventDisableTiming));
  try {
    event->faults = slots_.take();
  } catch (...) {
    PG_CUDA_WARN(cudaEventDestroy(event->native));
    throw;
  }
  alive_++;
  return reinterpret_cast<uint64_t>(event.release());
}

void Device::event_destroy(uint32_t device, uint64_t handle) {
  std::unique_ptr<Event> event(&event_on(device, handle));
  alive_--;
  if (event->is_idle()) {
    PG_CUDA_WARN(cudaEventDestroy(event->native));
    slots_.give(event->faults);
  } else {
    event->readers.emplace_back(event->native);
    slots_.retire(event->faults, std::move(event->readers));
  }
}

void Device::event_record(uint32_t device, uint64_t handle, uint64_t on) {
  Event& event = event_on(device, handle);
  Stream& stream = enter(device, on);
  stream.refuse_capture("event_record", "a plan has no events of its own");
  bool may_fault = stream.watch->is_pending();
  if (event.may_fault) renew(event, slots_);
  if (may_fault) {
    std::lock_guard lock(event.mutex);
    event.watch = stream.watch, event.watched = stream.watch->enqueued();
    move_fault(stream.native, event.faults, stream.own_faults, kFaultReplace);
  }
  event.may_fault = may_fault;
  PG_CUDA(cudaEventRecord(event.native, stream.native));
}

// The event may be another device's.
void Device::event_wait(uint32_t device, uint64_t handle, uint64_t on) {
  Event& event = event_on(device, handle);
  Stream& stream = enter(device, on);
  stream.refuse_capture("event_wait", "a plan waits for nothing but its own work");
  PG_CUDA(cudaStreamWaitEvent(stream.native, event.native, 0));
  if (event.may_fault) adopt(event, stream);
}

bool Device::event_query(uint32_t device, uint64_t handle) {
  cudaError_t status = PG_CUDA_STATUS(cudaEventQuery(event_on(device, handle).native));
  if (status == cudaErrorNotReady) {
    (void)cudaGetLastError();
    return false;
  }
  check_sync(status, "cudaEventQuery");
  return true;
}

void Device::event_sync(uint32_t device, uint64_t handle) {
  Event& event = event_on(device, handle);
  check_sync(PG_CUDA_STATUS(cudaEventSynchronize(event.native)), "cudaEventSynchronize");
  look(event);
}

}  // namespace cuda
