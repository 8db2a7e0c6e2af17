// SPDX-License-Identifier: Apache-2.0
// Devices, their properties, and errors.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "stream.hpp"

using namespace standin;

namespace {

constexpr int kUnits = 132;
constexpr size_t kSharedPerBlock = 48 << 10, kSharedOptIn = 227 << 10;

bool exists(int device) { return device >= 0 && device < state().devices; }

struct ErrorText {
  cudaError_t code;
  const char *name, *text;
};
#define TEXT(code, text) \
  { code, #code, text }
constexpr ErrorText kErrors[] = {
    TEXT(cudaSuccess, "no error"),
    TEXT(cudaErrorInvalidValue, "invalid argument"),
    TEXT(cudaErrorMemoryAllocation, "out of memory"),
    TEXT(cudaErrorInitializationError, "initialization error"),
    TEXT(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    TEXT(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    TEXT(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
    TEXT(cudaErrorInvalidDeviceFunction, "invalid device function"),
    TEXT(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    TEXT(cudaErrorInvalidDevice, "invalid device ordinal"),
    TEXT(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    TEXT(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    TEXT(cudaErrorUnsupportedPtxVersion, "the provided PTX was compiled with an unsupported toolchain."),
    TEXT(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    TEXT(cudaErrorSymbolNotFound, "named symbol not found"),
    TEXT(cudaErrorNotReady, "device not ready"),
    TEXT(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    TEXT(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    TEXT(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    TEXT(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    TEXT(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    TEXT(cudaErrorAssert, "device-side assert triggered"),
    TEXT(cudaErrorMisalignedAddress, "misaligned address"),
    TEXT(cudaErrorLaunchFailure, "unspecified launch failure"),
    TEXT(cudaErrorNotPermitted, "operation not permitted"),
    TEXT(cudaErrorNotSupported, "operation not supported"),
    TEXT(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    TEXT(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    TEXT(cudaErrorStreamCaptureUnmatched, "the capture was not initiated in this stream"),
    TEXT(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    TEXT(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    TEXT(cudaErrorStreamCaptureImplicit,
         "operation would make the legacy stream depend on a capturing blocking stream"),
    TEXT(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"),
    TEXT(cudaErrorGraphExecUpdateFailure,
         "the graph update was not performed because it included changes which "
         "violated constraints specific to instantiated graph update"),
    TEXT(cudaErrorUnknown, "unknown error"),
};
#undef TEXT

}  // namespace

const char* cudaGetErrorName(cudaError_t error) {
  for (const ErrorText& e : kErrors) {
    if (e.code == error) return e.name;
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  for (const ErrorText& e : kErrors) {
    if (e.code == error) return e.text;
  }
  return "unrecognized error code";
}

// Sticky errors stay.
cudaError_t cudaGetLastError() {
  cudaError_t last = thread_state().last, stuck = lost(thread_state().device);
  thread_state().last = cudaSuccess;
  return stuck != cudaSuccess ? stuck : last;
}

// Knows only what a call of this runtime has answered: a device that work has ended shows at the next call.
cudaError_t cudaPeekAtLastError() { return thread_state().last; }

// Where it fails it leaves its argument alone.
cudaError_t cudaGetDeviceCount(int* count) {
  STANDIN_ENTER();
  *count = state().devices;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  STANDIN_ENTER();
  if (!exists(device)) return finish(cudaErrorInvalidDevice);
  thread_state().device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  STANDIN_ENTER();
  *device = thread_state().device;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  STANDIN_ENTER();
  *version = state().driver == Driver::kAbsent ? 0 : state().driver == Driver::kOld ? 12020 : CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  STANDIN_ENTER();
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  STANDIN_ENTER();
  if (!exists(device)) return finish(cudaErrorInvalidDevice);
  *out = cudaDeviceProp{};
  std::snprintf(out->name, sizeof out->name, "Stand-in GPU %d", device);
  out->totalGlobalMem = state().memory;
  out->sharedMemPerBlock = kSharedPerBlock;
  out->sharedMemPerBlockOptin = kSharedOptIn;
  out->sharedMemPerMultiprocessor = 228 << 10;
  out->regsPerBlock = 65536;
  out->warpSize = 32;
  out->maxThreadsPerBlock = 1024;
  out->maxThreadsPerMultiProcessor = 2048;
  out->maxThreadsDim[0] = out->maxThreadsDim[1] = 1024, out->maxThreadsDim[2] = 64;
  out->maxGridSize[0] = 0x7fffffff, out->maxGridSize[1] = out->maxGridSize[2] = 65535;
  out->major = state().device[device].major;
  out->minor = state().device[device].minor;
  out->multiProcessorCount = kUnits;
  out->concurrentKernels = 1;
  out->asyncEngineCount = 3;
  out->unifiedAddressing = 1;
  out->l2CacheSize = 50 << 20;
  out->pciBusID = device + 1;
  // Each process has GPUs of its own, unless it is to share them.
  const char* shared = std::getenv("PERIGEE_STANDIN_GPUS");
  const uint64_t numbers[2] = {
      static_cast<uint64_t>(device) + 1,
      shared != nullptr && std::strcmp(shared, "shared") == 0 ? 0 : static_cast<uint64_t>(getpid())};
  static_assert(sizeof numbers == sizeof out->uuid);
  std::memcpy(&out->uuid, numbers, sizeof numbers);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  STANDIN_ENTER();
  if (!exists(device)) return finish(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = state().device[device].major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = state().device[device].minor; break;
    case cudaDevAttrMultiProcessorCount: *value = kUnits; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = kSharedPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = kSharedOptIn; break;
    case cudaDevAttrMaxGridDimX: *value = 0x7fffffff; break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: *value = 65535; break;
    case cudaDevAttrL2CacheSize: *value = 50 << 20; break;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrHostNativeAtomicSupported: *value = 1; break;
    case cudaDevAttrAsyncEngineCount: *value = 3; break;
    case cudaDevAttrPciBusId: *value = device + 1; break;
    default: return finish(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  STANDIN_ENTER();
  if (!exists(device) || !exists(peer)) return finish(cudaErrorInvalidDevice);
  *can = device != peer;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  STANDIN_ENTER();
  if (!exists(peer) || peer == thread_state().device) return finish(cudaErrorInvalidDevice);
  if (flags != 0) return finish(cudaErrorInvalidValue);
  State& s = state();
  std::lock_guard lock(s.mutex);
  bool fresh = s.device[thread_state().device].peers.insert(peer).second;
  return finish(fresh ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  STANDIN_ENTER();
  *least = 0, *greatest = -5;
  return cudaSuccess;
}

// Kernels get no image here; what is asked of one is granted.
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute, int) {
  STANDIN_ENTER();
  return finish(function == nullptr ? cudaErrorInvalidDeviceFunction : cudaSuccess);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int threads, size_t) {
  STANDIN_ENTER();
  if (threads <= 0 || threads > 1024) return finish(cudaErrorInvalidValue);
  *blocks = 2048 / threads < 32 ? 2048 / threads : 32;
  return cudaSuccess;
}
