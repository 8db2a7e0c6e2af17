// SPDX-License-Identifier: Apache-2.0
// Calls into cuBLASLt and cuDNN, wrapped as those into the runtime are, and one handle per device for each of them:
//   PG_CUBLAS(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
//   PG_CUDNN(cudnnBackendFinalize(descriptor));
#pragma once

#include <cublasLt.h>
#include <cudnn.h>

#include <mutex>

#include "runtime.hpp"

namespace cuda {

// Throw with the status's name. Configurations that the library lacks are PG_E_NOT_SUPPORTED.
[[noreturn]] void fail_cublas(cublasStatus_t status, const char* call);
[[noreturn]] void fail_cudnn(cudnnStatus_t status, const char* call);
void warn_cublas(cublasStatus_t status, const char* call) noexcept;
void warn_cudnn(cudnnStatus_t status, const char* call) noexcept;

inline void check_cublas(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]]
    fail_cublas(status, call);
}
inline void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS) [[unlikely]]
    fail_cudnn(status, call);
}

// What cuDNN gave as the reason of the calling thread's last failure, once; "" where it gave none. Taking it keeps a
// refusal that was expected out of the text of a later error.
std::string take_cudnn_reason();

template <class Status>
[[nodiscard]] inline Status seen_status(Status status) {
  return status;
}

// cuBLASLt's handle may be used by several threads at a time. Created with the first use, which takes a while.
cublasLtHandle_t blas_handle(uint32_t device);

// cuDNN's belongs to one thread at a time, and so does the stream that is set in it: hold it while you use the handle.
// Plans are found with a second one, so that no launch waits for that; any handle of the device executes them (as
// XLA does it: openxla/xla pull request 21412).
class DnnHandle {
 public:
  explicit DnnHandle(uint32_t device);  // to find plans with
  DnnHandle(uint32_t device, cudaStream_t stream);
  cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_;
  std::unique_lock<std::mutex> lock_;
};

// Destroys all handles: when the plugin closes, unless the process ends.
void release_vendor_handles() noexcept;

// Runs body; what it throws about a vendor library gets "; asked for: ..." appended.
template <class Body>
auto asked_for(const std::string& what, Body&& body) {
  try {
    return body();
  } catch (const pg::Error& e) {
    throw pg::Error(e.code, std::string(e.what()) + "; asked for: " + what, e.native, e.flags);
  }
}

}  // namespace cuda

#define PG_CUBLAS(call) ::cuda::check_cublas((call), #call)
#define PG_CUDNN(call) ::cuda::check_cudnn((call), #call)
// Where a failure is one of the answers: the caller looks at the status.
#define PG_CUBLAS_STATUS(call) ::cuda::seen_status(call)
#define PG_CUDNN_STATUS(call) ::cuda::seen_status(call)
#define PG_CUBLAS_WARN(call)                                                                                    \
  do {                                                                                                          \
    if (cublasStatus_t status_ = (call); status_ != CUBLAS_STATUS_SUCCESS) ::cuda::warn_cublas(status_, #call); \
  } while (false)
#define PG_CUDNN_WARN(call)                                                                                  \
  do {                                                                                                       \
    if (cudnnStatus_t status_ = (call); status_ != CUDNN_STATUS_SUCCESS) ::cuda::warn_cudnn(status_, #call); \
  } while (false)
