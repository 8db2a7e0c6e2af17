// SPDX-License-Identifier: Apache-2.0
// Memory and copies; streams and events are in device_order.cpp.
#include "device.hpp"

#include <algorithm>
#include <cinttypes>

#include "activity.hpp"
#include "copy.hpp"
#include "probe.hpp"

namespace cuda {
namespace {

void* pointer(pg_address address) { return reinterpret_cast<void*>(address.buffer + address.offset); }

[[noreturn]] void fail_memory(uint32_t device, uint64_t bytes, cudaError_t status) {
  std::string text = describe_runtime(status, "cudaMalloc");
  (void)cudaGetLastError();
  size_t left = 0, total = 0;
  if (PG_CUDA_STATUS(cudaMemGetInfo(&left, &total)) == cudaSuccess) {
    text =
        pg::format("%" PRIu64 " bytes were asked for, %zu of %zu are free on cuda:%u: ", bytes, left, total, device) +
        text;
  }
  throw pg::Error(PG_E_OUT_OF_MEMORY, text, static_cast<int64_t>(status));
}

[[noreturn]] void fail_pinned(uint64_t bytes, cudaError_t status) {
  (void)cudaGetLastError();
  std::string text = pg::format("%" PRIu64 " bytes of pinned host memory were asked for: ", bytes);
  throw pg::Error(PG_E_OUT_OF_MEMORY, text + describe_runtime(status, "cudaHostAlloc"), static_cast<int64_t>(status));
}

}  // namespace

uint32_t Device::count(std::string& reason) {
  std::vector<int> usable = usable_devices(reason);
  set_native_devices(usable.data(), static_cast<uint32_t>(usable.size()));
  return static_cast<uint32_t>(usable.size());
}

// Asks for the free memory only where the process uses the device already: the question alone would start it up, and
// take hundreds of megabytes of it.
void Device::properties(uint32_t device, pg_device_properties& out) {
  cudaDeviceProp found;
  PG_CUDA(cudaGetDeviceProperties(&found, native_device(device)));
  out.flags = PG_DEVICE_ACCELERATOR;
  std::snprintf(out.name, sizeof out.name, "%.90s (compute capability %d.%d)", found.name, found.major, found.minor);
  out.memory_total = found.totalGlobalMem;
  if (is_used(device) && !is_lost(device)) {
    size_t left = 0, total = 0;
    use_device(device);
    PG_CUDA(cudaMemGetInfo(&left, &total));
    out.memory_free = left;
  }
  out.stream_count = 4;
  out.alignment = 512;
  out.compute_units = static_cast<uint32_t>(found.multiProcessorCount);
}

uint64_t Device::alloc(uint32_t device, uint32_t kind, uint64_t bytes) {
  if (bytes == 0) pg::fail_argument("0 bytes");
  use_device(device);
  void* memory = nullptr;
  if (kind == PG_MEMORY_PINNED) {
    cudaError_t status = PG_CUDA_STATUS(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable));
    if (status == cudaErrorMemoryAllocation) fail_pinned(bytes, status);
    check_runtime(status, "cudaHostAlloc");
  } else if (kind == PG_MEMORY_DEVICE) {
    cudaError_t status = PG_CUDA_STATUS(cudaMalloc(&memory, bytes));
    if (status == cudaErrorMemoryAllocation) fail_memory(device, bytes, status);
    check_runtime(status, "cudaMalloc");
  } else {
    pg::fail_support(pg::format("memory of kind %u", kind));
  }
  alive_++;
  return reinterpret_cast<uint64_t>(memory);
}

// On a lost device too, so that a program can put it away: its memory is gone.
void Device::free(uint32_t device, uint32_t kind, uint64_t buffer) {
  use_device(device);
  void* memory = reinterpret_cast<void*>(buffer);
  cudaError_t status =
      kind == PG_MEMORY_PINNED ? PG_CUDA_STATUS(cudaFreeHost(memory)) : PG_CUDA_STATUS(cudaFree(memory));
  bool gone = status == cudaSuccess || is_lost(device) || is_unloading(status);
  if (gone || is_sticky(status)) alive_--;
  if (!gone) fail_runtime(status, kind == PG_MEMORY_PINNED ? "cudaFreeHost" : "cudaFree");
}

void Device::upload(uint32_t device, pg_address target, const void* source, uint64_t bytes, pg::Ticket ticket) {
  Stream& stream = enter(device, ticket.stream);
  stream.refuse_capture("upload", "what the host's memory holds now would be copied, not what it holds at the launch");
  TimedWork timed(stream, PG_ACTIVITY_UPLOAD, ticket, bytes);
  PG_CUDA(cudaMemcpyAsync(pointer(target), source, bytes, cudaMemcpyHostToDevice, stream.native));
}

void Device::download(uint32_t device, void* target, pg_address source, uint64_t bytes, pg::Ticket ticket) {
  Stream& stream = enter(device, ticket.stream);
  stream.refuse_capture("download", "the host's memory may be gone at the launch");
  TimedWork timed(stream, PG_ACTIVITY_DOWNLOAD, ticket, bytes);
  PG_CUDA(cudaMemcpyAsync(target, pointer(source), bytes, cudaMemcpyDeviceToHost, stream.native));
}

void Device::copy(uint32_t device, const pg_tensor& target, const pg_tensor& source, pg::Ticket ticket) {
  Stream& stream = enter(device, ticket.stream);
  if (target.rank != source.rank || !std::equal(target.shape, target.shape + target.rank, source.shape)) {
    pg::fail_argument(
        pg::format("copy: target %s, source %s", pg::shape_text(target).c_str(), pg::shape_text(source).c_str()));
  }
  TimedWork timed(stream, PG_ACTIVITY_KERNEL, ticket);
  copy_tensor(stream.native, target, source);
}

void Device::fill(uint32_t device, const pg_tensor& target, const pg_number& value, pg::Ticket ticket) {
  Stream& stream = enter(device, ticket.stream);
  TimedWork timed(stream, PG_ACTIVITY_KERNEL, ticket);
  fill_tensor(stream.native, target, value);
}

void Device::peer(uint32_t target_device, pg_address target, uint32_t source_device, pg_address source, uint64_t bytes,
                  pg::Ticket ticket) {
  Stream& stream = enter(target_device, ticket.stream);
  stream.refuse_capture("peer", "only work of one device is");
  if (target_device != source_device) connect(target_device, source_device);
  TimedWork timed(stream, PG_ACTIVITY_PEER, ticket, bytes);
  if (target_device == source_device) {
    PG_CUDA(cudaMemcpyAsync(pointer(target), pointer(source), bytes, cudaMemcpyDeviceToDevice, stream.native));
    return;
  }
  PG_CUDA(cudaMemcpyPeerAsync(pointer(target), native_device(target_device), pointer(source),
                              native_device(source_device), bytes, stream.native));
}

// Once per pair and direction. Where two devices cannot reach each other, CUDA goes through the host by itself.
void Device::connect(uint32_t device, uint32_t other) {
  std::lock_guard lock(mutex_);
  uint64_t pair = static_cast<uint64_t>(device) << 32 | other;
  if (std::find(connected_.begin(), connected_.end(), pair) != connected_.end()) return;
  int can = 0;
  PG_CUDA(cudaDeviceCanAccessPeer(&can, native_device(device), native_device(other)));
  if (can != 0) {
    cudaError_t status = PG_CUDA_STATUS(cudaDeviceEnablePeerAccess(native_device(other), 0));
    // By another library of this process; or a device without an NVSwitch has as many peers as it can.
    if (status == cudaErrorPeerAccessAlreadyEnabled || status == cudaErrorTooManyPeers) {
      (void)cudaGetLastError();
    } else {
      check_runtime(status, "cudaDeviceEnablePeerAccess");
    }
  }
  connected_.push_back(pair);
}

uint64_t Device::native(uint32_t device, const char* what, uint64_t handle) {
  if (std::strcmp(what, "stream") == 0) return reinterpret_cast<uint64_t>(enter(device, handle).native);
  if (std::strcmp(what, "buffer") == 0) return handle;
  if (std::strcmp(what, "device") == 0) return static_cast<uint64_t>(native_device(device));  // the runtime's number
  pg::fail_support(pg::format("\"%s\" has no native handle; \"stream\", \"buffer\" and \"device\" have", what));
}

}  // namespace cuda
