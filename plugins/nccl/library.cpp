// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

namespace nccl {
namespace {

#define PERIGEE_TEXT_OF(name) #name
#define PERIGEE_TEXT(name) PERIGEE_TEXT_OF(name)  // of what the header makes of a name

constexpr int kOldest = 21800;  // communicators that do not block, in groups too

Library loaded;
std::atomic<bool> exiting{false};

// The host has opened it from where the manifest says; the linker knows it by this name then.
void* open(const char* name) {
  void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) pg::fail(PG_E_NOT_FOUND, std::string("needs the library ") + name + ": " + dlerror());
  return handle;
}

template <class Function>
void find(void* handle, const char* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  if (function == nullptr) pg::fail_support(std::string(library) + " has no " + name);
}

std::string version_text(int version) {
  return pg::format("%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

void load_library() {
  void* const own = open(PERIGEE_NCCL_LIBRARY);
  void* const runtime = open(PERIGEE_CUDART_LIBRARY);
#define PERIGEE_FIND(name) find(own, PERIGEE_NCCL_LIBRARY, PERIGEE_TEXT(name), loaded.name);
  PERIGEE_NCCL_FUNCTIONS(PERIGEE_FIND)
#undef PERIGEE_FIND
#define PERIGEE_FIND(name) find(runtime, PERIGEE_CUDART_LIBRARY, PERIGEE_TEXT(name), loaded.name);
  PERIGEE_CUDART_FUNCTIONS(PERIGEE_FIND)
  PERIGEE_FIND(cudaMalloc)
#undef PERIGEE_FIND
  int version = 0;
  check(loaded.ncclGetVersion(&version), "ncclGetVersion");
  if (version < kOldest)
    pg::fail_support("this is NCCL " + version_text(version) + "; " + version_text(kOldest) + " or newer is needed");
}

const Library& library() { return loaded; }

std::string describe(ncclResult_t status) {
  return pg::format("%s (ncclResult_t %d)", loaded.ncclGetErrorString(status), static_cast<int>(status));
}

void fail_nccl(ncclResult_t status, const std::string& what) {
  const bool outside = status == ncclRemoteError || status == ncclSystemError;
  std::string text = what + ": " + describe(status);
  if (const char* last = loaded.ncclGetLastError(nullptr); last != nullptr && last[0] != '\0')
    text += std::string("; ") + last;
  throw pg::Error(outside ? PG_E_FAILED_PRECONDITION : PG_E_INTERNAL, text, status);
}

void check(ncclResult_t status, const char* call) {
  if (status != ncclSuccess && status != ncclInProgress) fail_nccl(status, call);
}

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  (void)loaded.cudaGetLastError();  // it would be told again by somebody else's call
  throw pg::Error(status == cudaErrorMemoryAllocation ? PG_E_OUT_OF_MEMORY : PG_E_INTERNAL,
                  pg::format("%s: %s (%s, %d)", call, loaded.cudaGetErrorString(status),
                             loaded.cudaGetErrorName(status), static_cast<int>(status)),
                  status);
}

void watch_exit(void (*stop)()) {
  static void (*stopping)() = nullptr;
  stopping = stop;
  [[maybe_unused]] static const int registered = std::atexit([] {
    exiting = true;
    stopping();
  });
}

bool is_exiting() { return exiting; }

DeviceScope::DeviceScope() { check(loaded.cudaGetDevice(&before_), "cudaGetDevice"); }
DeviceScope::~DeviceScope() { (void)loaded.cudaSetDevice(before_); }
void DeviceScope::use(int ordinal) { check(loaded.cudaSetDevice(ordinal), "cudaSetDevice"); }

}  // namespace nccl
