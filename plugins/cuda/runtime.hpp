// SPDX-License-Identifier: Apache-2.0
// Calls into the CUDA runtime. Each is wrapped, so that a failure becomes a pg::Error that names the call:
//   PG_CUDA(cudaStreamSynchronize(stream));
// scripts/dev/lint looks for calls that are not.
#pragma once

#include <cuda_runtime_api.h>

#include "perigee/plugin.hpp"

namespace cuda {

// Throws: out of memory as PG_E_OUT_OF_MEMORY, a failure that outlives the call with PG_ERROR_DEVICE_LOST.
[[noreturn]] void fail_runtime(cudaError_t status, const char* call);
// Logs it instead: for destructors, and for calls whose failure changes nothing.
void warn_runtime(cudaError_t status, const char* call) noexcept;

inline void check_runtime(cudaError_t status, const char* call) {
  if (status != cudaSuccess) [[unlikely]]
    fail_runtime(status, call);
}

// Makes a device the calling thread's current one. Cheap when it is already.
void use_device(uint32_t device);

}  // namespace cuda

#define PG_CUDA(call) ::cuda::check_runtime((call), #call)
#define PG_CUDA_WARN(call)                                                                          \
  do {                                                                                              \
    if (cudaError_t status_ = (call); status_ != cudaSuccess) ::cuda::warn_runtime(status_, #call); \
  } while (false)
