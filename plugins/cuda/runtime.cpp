// SPDX-License-Identifier: Apache-2.0
#include "runtime.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

namespace cuda {
namespace {

constexpr uint32_t kNoDevice = UINT32_MAX;

thread_local uint32_t current = kNoDevice;
std::atomic<int> natives[kMaxDevices];
std::atomic<bool> lost[kMaxDevices];
std::atomic<bool> used[kMaxDevices];
std::atomic<bool> forked{false};

std::atomic<bool> exiting{false};

// The runtime does not work in a child of fork once the parent has used it. The handler of the exit is registered when
// a device is first used, behind the host's own for its shutdown, so that it runs before that.
void watch_process() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, [] { forked = true; });
    watch_exit();
  });
}

int32_t code_of(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation: return PG_E_OUT_OF_MEMORY;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidDevice:
    case cudaErrorInvalidResourceHandle: return PG_E_INVALID_ARGUMENT;
    case cudaErrorNotSupported:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion: return PG_E_NOT_SUPPORTED;
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureMerge:
    case cudaErrorStreamCaptureUnmatched:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorCapturedEvent:
    case cudaErrorStreamCaptureWrongThread: return PG_E_FAILED_PRECONDITION;
    default: return PG_E_INTERNAL;
  }
}

}  // namespace

bool is_sticky(cudaError_t status) {
  switch (status) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice: return true;
    default: return false;
  }
}

std::string describe_runtime(cudaError_t status, const char* call) {
  const char* end = std::strchr(call, '(');
  std::string name = end == nullptr ? call : std::string(call, end);
  return pg::format("%s: %s (%s, %d)", name.c_str(), cudaGetErrorString(status), cudaGetErrorName(status),
                    static_cast<int>(status));
}

void fail_runtime(cudaError_t status, const char* call) {
  (void)cudaGetLastError();  // or CUB would take it for its own launch's
  std::string text = describe_runtime(status, call);
  uint32_t flags = 0;
  if (is_sticky(status)) {
    flags = PG_ERROR_DEVICE_LOST;
    if (current != kNoDevice) lost[current] = true;
    text += "; the device is lost to this process (CUDA_LAUNCH_BLOCKING=1 shows which operator it was)";
  }
  throw pg::Error(code_of(status), std::move(text), static_cast<int64_t>(status), flags);
}

void warn_runtime(cudaError_t status, const char* call) noexcept {
  (void)cudaGetLastError();
  if (is_unloading(status)) return;
  if (is_sticky(status) && current != kNoDevice && lost[current].exchange(true)) return;  // has been told
  try {
    pg::log(PG_LOG_WARNING, "cuda: " + describe_runtime(status, call));
  } catch (...) {  // no memory for the text
  }
}

void use_device(uint32_t device) {
  if (forked.load(std::memory_order_relaxed)) [[unlikely]] {
    pg::fail(PG_E_FAILED_PRECONDITION, "used after fork: CUDA stayed in the parent process");
  }
  if (current == device) return;
  if (device >= kMaxDevices) pg::fail_argument(pg::format("there is no cuda:%u", device));
  watch_process();
  current = kNoDevice;  // should the call fail
  cudaError_t status = PG_CUDA_STATUS(cudaSetDevice(native_device(device)));
  if (!is_unloading(status)) check_runtime(status, "cudaSetDevice");
  current = device;
  used[device].store(true, std::memory_order_relaxed);
}

void watch_exit() {
  std::atexit([] { exiting = true; });
}
bool is_exiting() noexcept { return exiting.load(std::memory_order_relaxed); }

bool is_used(uint32_t device) { return device < kMaxDevices && used[device].load(std::memory_order_relaxed); }

// 0 stands for "as CUDA counts", so that nothing has to be set where all devices are used.
int native_device(uint32_t device) {
  int number = natives[device].load(std::memory_order_relaxed);
  return number == 0 ? static_cast<int>(device) : number - 1;
}

void set_native_devices(const int* numbers, uint32_t count) {
  for (uint32_t i = 0; i < std::min(count, kMaxDevices); i++) natives[i] = numbers[i] + 1;
}

bool is_lost(uint32_t device) { return device < kMaxDevices && lost[device].load(std::memory_order_relaxed); }

void forget_lost() {
  for (auto& flag : lost) flag = false;
}

}  // namespace cuda
