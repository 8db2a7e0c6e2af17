// SPDX-License-Identifier: Apache-2.0
#include "vendor.hpp"

#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

namespace cuda {
namespace {

// "cublasLtMatmul" of "cublasLtMatmul(handle, ...)".
std::string function_of(const char* call) { return std::string(call, std::strcspn(call, "(")); }

std::string cudnn_text(cudnnStatus_t status, const char* call) {
  std::string text = function_of(call) + ": " + cudnnGetErrorString(status), reason = take_cudnn_reason();
  return reason.empty() ? text : text + " (" + reason + ")";
}

std::string cublas_text(cublasStatus_t status, const char* call) {
  return function_of(call) + ": " + cublasLtGetStatusName(status);
}

// What an earlier kernel did to the context. The libraries link a runtime of their own, so ours may not have heard of
// it yet: it is asked with a call that reports earlier failures, waits for nothing, and is allowed during a capture.
cudaError_t context_failure() {
  cudaError_t status = cudaPeekAtLastError();
  size_t left = 0, total = 0;
  return status != cudaSuccess ? status : PG_CUDA_STATUS(cudaMemGetInfo(&left, &total));
}

// A call fails for what an earlier kernel did, too: then the runtime knows more.
[[noreturn]] void fail_vendor(int32_t code, const std::string& text, int64_t status) {
  cudaError_t pending = code == PG_E_INTERNAL ? context_failure() : cudaSuccess;
  if (pending != cudaSuccess) {
    try {
      fail_runtime(pending, "the runtime");
    } catch (const pg::Error& e) {
      throw pg::Error(e.code, text + "; " + e.what(), status, e.flags);
    }
  }
  throw pg::Error(code, text, status);
}

struct Dnn {
  cudnnHandle_t handle = nullptr;
  std::mutex busy;
};

// Handles by device. Never destroyed by static destructors: the driver may be gone by then.
struct Handles {
  std::mutex mutex;
  std::vector<cublasLtHandle_t> blas;
  std::vector<std::unique_ptr<Dnn>> dnn, dnn_planning;
};
Handles& handles() {
  static auto* instance = new Handles();
  return *instance;
}

Dnn& dnn_of(uint32_t device, std::vector<std::unique_ptr<Dnn>> Handles::*kind) {
  Handles& all = handles();
  std::lock_guard lock(all.mutex);
  if ((all.*kind).size() <= device) (all.*kind).resize(device + 1);
  std::unique_ptr<Dnn>& dnn = (all.*kind)[device];
  if (dnn == nullptr) {
    auto fresh = std::make_unique<Dnn>();
    use_device(device);
    PG_CUDNN(cudnnCreate(&fresh->handle));
    [[maybe_unused]] static const bool watched = (watch_exit(), true);
    dnn = std::move(fresh);
  }
  return *dnn;
}

}  // namespace

std::string take_cudnn_reason() {
  std::array<char, 512> reason{};
  cudnnGetLastErrorString(reason.data(), reason.size());
  reason.back() = '\0';
  return reason.data();
}

void fail_cublas(cublasStatus_t status, const char* call) {
  int32_t code = PG_E_INTERNAL;
  if (status == CUBLAS_STATUS_ALLOC_FAILED) code = PG_E_OUT_OF_MEMORY;
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH) code = PG_E_NOT_SUPPORTED;
  fail_vendor(code, cublas_text(status, call), status);
}

void fail_cudnn(cudnnStatus_t status, const char* call) {
  int32_t code = PG_E_INTERNAL;
  bool memory = status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  if (memory) code = PG_E_OUT_OF_MEMORY;
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) code = PG_E_NOT_SUPPORTED;
  fail_vendor(code, cudnn_text(status, call), status);
}

void warn_cublas(cublasStatus_t status, const char* call) noexcept {
  pg::guard(nullptr, nullptr, [&] { pg::log(PG_LOG_WARNING, cublas_text(status, call)); });
}
void warn_cudnn(cudnnStatus_t status, const char* call) noexcept {
  pg::guard(nullptr, nullptr, [&] { pg::log(PG_LOG_WARNING, cudnn_text(status, call)); });
}

cublasLtHandle_t blas_handle(uint32_t device) {
  Handles& all = handles();
  std::lock_guard lock(all.mutex);
  if (all.blas.size() <= device) all.blas.resize(device + 1, nullptr);
  if (all.blas[device] == nullptr) {
    use_device(device);
    PG_CUBLAS(cublasLtCreate(&all.blas[device]));
    [[maybe_unused]] static const bool watched = (watch_exit(), true);
  }
  return all.blas[device];
}

DnnHandle::DnnHandle(uint32_t device) {
  Dnn& dnn = dnn_of(device, &Handles::dnn_planning);
  lock_ = std::unique_lock(dnn.busy);
  handle_ = dnn.handle;
}
DnnHandle::DnnHandle(uint32_t device, cudaStream_t stream) {
  Dnn& dnn = dnn_of(device, &Handles::dnn);
  lock_ = std::unique_lock(dnn.busy);
  handle_ = dnn.handle;
  PG_CUDNN(cudnnSetStream(handle_, stream));
}

void release_vendor_handles() noexcept {
  if (is_exiting()) return;
  Handles& all = handles();
  std::lock_guard lock(all.mutex);
  for (cublasLtHandle_t handle : all.blas) {
    if (handle != nullptr) PG_CUBLAS_WARN(cublasLtDestroy(handle));
  }
  for (auto* kind : {&all.dnn, &all.dnn_planning}) {
    for (const std::unique_ptr<Dnn>& dnn : *kind) {
      if (dnn != nullptr) PG_CUDNN_WARN(cudnnDestroy(dnn->handle));
    }
    kind->clear();
  }
  all.blas.clear();
}

}  // namespace cuda
