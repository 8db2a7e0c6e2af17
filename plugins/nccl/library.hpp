// SPDX-License-Identifier: Apache-2.0
// NCCL and the CUDA runtime, found when the plugin is opened: building needs their headers alone. Calls are checked:
//   check(library().ncclGroupStart(), "ncclGroupStart");
#pragma once

#include <nccl.h>

#include <string>

#include "perigee/plugin.hpp"

namespace nccl {

#define PERIGEE_NCCL_FUNCTIONS(X) \
  X(ncclGetVersion)               \
  X(ncclGetErrorString)           \
  X(ncclGetLastError)             \
  X(ncclGetUniqueId)              \
  X(ncclCommInitRankConfig)       \
  X(ncclCommFinalize)             \
  X(ncclCommDestroy)              \
  X(ncclCommAbort)                \
  X(ncclCommGetAsyncError)        \
  X(ncclGroupStart)               \
  X(ncclGroupEnd)                 \
  X(ncclAllReduce)                \
  X(ncclReduce)                   \
  X(ncclBroadcast)                \
  X(ncclAllGather)                \
  X(ncclReduceScatter)            \
  X(ncclSend)                     \
  X(ncclRecv)
// Those that the C++ header overloads are not among them.
#define PERIGEE_CUDART_FUNCTIONS(X) \
  X(cudaGetDevice)                  \
  X(cudaSetDevice)                  \
  X(cudaGetDeviceProperties)        \
  X(cudaGetErrorName)               \
  X(cudaGetErrorString)             \
  X(cudaGetLastError)               \
  X(cudaStreamIsCapturing)          \
  X(cudaEventCreateWithFlags)       \
  X(cudaEventRecord)                \
  X(cudaEventQuery)                 \
  X(cudaEventDestroy)               \
  X(cudaFree)

struct Library {
#define PERIGEE_DECLARE(name) decltype(&::name) name;
  PERIGEE_NCCL_FUNCTIONS(PERIGEE_DECLARE)
  PERIGEE_CUDART_FUNCTIONS(PERIGEE_DECLARE)
#undef PERIGEE_DECLARE
  cudaError_t (*cudaMalloc)(void**, size_t);
};

// Throws where a library or one of its functions is missing, or NCCL is too old: why the plugin is not available.
void load_library();
const Library& library();  // loaded

// Throw with the status's name and what NCCL says about its last failure. ncclInProgress is none.
void check(ncclResult_t status, const char* call);
[[noreturn]] void fail_nccl(ncclResult_t status, const std::string& what);
void check(cudaError_t status, const char* call);
std::string describe(ncclResult_t status);

// Whether the process is ending: libraries that were loaded by the first use of a device have ended by then, and are
// left alone. `stop` runs before they do.
void watch_exit(void (*stop)());
bool is_exiting();

// Makes devices current and puts back what was: the plugin that has the devices remembers which one is.
class DeviceScope {
 public:
  DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  ~DeviceScope();
  void use(int ordinal);

 private:
  int before_ = 0;
};

}  // namespace nccl
