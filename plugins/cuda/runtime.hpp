// SPDX-License-Identifier: Apache-2.0
// Calls into the CUDA runtime. Each is wrapped, so that a failure becomes a pg::Error that names the call:
//   PG_CUDA(cudaStreamSynchronize(stream));
// scripts/dev/lint looks for calls that are not.
#pragma once

#include <cuda_runtime_api.h>

#include "perigee/plugin.hpp"

namespace cuda {

// Throws: out of memory as PG_E_OUT_OF_MEMORY, what a captured stream must not do as PG_E_FAILED_PRECONDITION, a
// failure that outlives the call with PG_ERROR_DEVICE_LOST. `native` is the runtime's number.
[[noreturn]] void fail_runtime(cudaError_t status, const char* call);
// Logs it instead: for destructors, and for calls whose failure changes nothing.
void warn_runtime(cudaError_t status, const char* call) noexcept;

inline void check_runtime(cudaError_t status, const char* call) {
  if (status != cudaSuccess) [[unlikely]]
    fail_runtime(status, call);
}

[[nodiscard]] inline cudaError_t seen_status(cudaError_t status) { return status; }

// "cudaMalloc: out of memory (cudaErrorMemoryAllocation, 2)"; of the call's text only the function's name is shown.
std::string describe_runtime(cudaError_t status, const char* call);
// Whether every later call on the device will fail too.
bool is_sticky(cudaError_t status);

// Whether the process is ending (exit handlers run), rather than the plugin being closed. Libraries that the driver and
// cuDNN loaded when they were first used came after us, so their handlers have run: their handles are left alone, what
// they hold ends with the process.
bool is_exiting() noexcept;
// Once a library that has exit handlers of its own has been used for the first time: what the host registered before
// that, also for plugins that came after the first use of a device, then runs when this is known.
void watch_exit();

// The process is ending, and the driver is gone before us: what would be waited for or freed is no more.
inline bool is_unloading(cudaError_t status) {
  return status == cudaErrorCudartUnloading || (status == cudaErrorContextIsDestroyed && is_exiting());
}

// Makes a device the calling thread's current one. Cheap when it is already: the thread remembers,
// so nothing else in this plugin may change it.
void use_device(uint32_t device);

// Devices are counted among those that this plugin's kernels run on, which may be fewer than CUDA's: the CUDA runtime's
// number of one. Set once, when they are counted.
int native_device(uint32_t device);
void set_native_devices(const int* numbers, uint32_t count);
constexpr uint32_t kMaxDevices = 64;

// Whether this process has made the device current before.
bool is_used(uint32_t device);
// A device that a sticky failure has ended. Forgotten when the plugin is opened: who asks the device learns it again.
bool is_lost(uint32_t device);
void forget_lost();

}  // namespace cuda

#define PG_CUDA(call) ::cuda::check_runtime((call), #call)
// Where a failure is one of the answers: the caller looks at the status.
#define PG_CUDA_STATUS(call) ::cuda::seen_status(call)
#define PG_CUDA_WARN(call)                                                                          \
  do {                                                                                              \
    if (cudaError_t status_ = (call); status_ != cudaSuccess) ::cuda::warn_runtime(status_, #call); \
  } while (false)
