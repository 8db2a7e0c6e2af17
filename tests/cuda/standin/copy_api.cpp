// SPDX-License-Identifier: Apache-2.0
// Copies and fills. They read and write host memory when the stream gets there.
#include <cstring>

#include "stream.hpp"

namespace {

using namespace standin;

bool on_device(const void* address, size_t bytes) { return is_device_range(address, bytes); }
// Host memory, or part of a block of device memory?
bool touches_device(const void* address) {
  return find_block(address, 0) != nullptr && find_block(address, 1) != nullptr;
}

cudaError_t check_copy(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return cudaSuccess;
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault) to_device = touches_device(to), from_device = touches_device(from);
  // Pinned memory may be named on the device's side.
  auto fits = [&](const void* address, bool device) {
    if (device) return on_device(address, bytes) || !touches_device(address);
    return !touches_device(address);
  };
  auto pinned = [&](const void* address) {
    State& s = state();
    std::lock_guard lock(s.mutex);
    auto it = s.host_blocks.upper_bound(static_cast<const char*>(address));
    return it != s.host_blocks.begin() && static_cast<const char*>(address) + bytes <= (--it)->first + it->second;
  };
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  if (to_device && !on_device(to, bytes) && !pinned(to)) return cudaErrorInvalidValue;
  if (from_device && !on_device(from, bytes) && !pinned(from)) return cudaErrorInvalidValue;
  return fits(to, to_device) && fits(from, from_device) ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  STANDIN_ENTER();
  if (cudaError_t bad = check_copy(to, from, bytes, kind); bad != cudaSuccess) return finish(bad);
  return finish(submit(stream,
                       {"copy", "copy",
                        [=] {
                          if (bytes > 0) std::memmove(to, from, bytes);
                        }},
                       true));
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  STANDIN_ENTER();
  if (cudaError_t refused = refuse_while_capturing(); refused != cudaSuccess) return finish(refused);
  if (cudaError_t bad = check_copy(to, from, bytes, kind); bad != cudaSuccess) return finish(bad);
  drain_device(thread_state().device);
  if (bytes > 0) std::memmove(to, from, bytes);
  return finish(lost(thread_state().device));
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  STANDIN_ENTER();
  State& s = state();
  if (to_device < 0 || from_device < 0 || to_device >= s.devices || from_device >= s.devices) {
    return finish(cudaErrorInvalidDevice);
  }
  const Block *target = find_block(to, bytes), *source = find_block(from, bytes);
  if (bytes > 0 &&
      (target == nullptr || source == nullptr || target->device != to_device || source->device != from_device)) {
    return finish(cudaErrorInvalidValue);
  }
  return finish(submit(stream,
                       {"copy", "copy",
                        [=] {
                          if (bytes > 0) std::memmove(to, from, bytes);
                        }},
                       true));
}

cudaError_t cudaMemsetAsync(void* address, int value, size_t bytes, cudaStream_t stream) {
  STANDIN_ENTER();
  if (!is_device_range(address, bytes)) return finish(cudaErrorInvalidValue);
  return finish(submit(stream,
                       {"copy", "copy",
                        [=] {
                          if (bytes > 0) std::memset(address, value, bytes);
                        }},
                       true));
}

cudaError_t cudaMemset(void* address, int value, size_t bytes) {
  STANDIN_ENTER();
  if (cudaError_t refused = refuse_while_capturing(); refused != cudaSuccess) return finish(refused);
  if (!is_device_range(address, bytes)) return finish(cudaErrorInvalidValue);
  drain_device(thread_state().device);
  if (bytes > 0) std::memset(address, value, bytes);
  return finish(lost(thread_state().device));
}
