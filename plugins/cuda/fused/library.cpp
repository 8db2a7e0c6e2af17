// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <map>
#include <mutex>
#include <set>

#include "nvrtc.hpp"
#include "source.hpp"

namespace cuda::fused {
namespace {

struct Loaded {
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  std::set<uint32_t> devices;  // whose memory has it
};

// Never destroyed by static destructors: the driver may be gone by then.
struct Libraries {
  std::mutex mutex;
  std::map<std::pair<int, std::string>, Loaded> all;  // by compute capability and source
};
Libraries& libraries() {
  static auto* instance = new Libraries();
  return *instance;
}

int capability_of(uint32_t device) {
  int major = 0, minor = 0;
  PG_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, native_device(device)));
  PG_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, native_device(device)));
  return major * 10 + minor;
}

Loaded load(const std::string& code) {
  Loaded made;
  PG_CUDA(cudaLibraryLoadData(&made.library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  try {
    PG_CUDA(cudaLibraryGetKernel(&made.kernel, made.library, kKernelName));
  } catch (...) {
    PG_CUDA_WARN(cudaLibraryUnload(made.library));
    throw;
  }
  return made;
}

}  // namespace

cudaKernel_t find_kernel(uint32_t device, const std::string& source) {
  use_device(device);
  const int capability = capability_of(device);
  Libraries& l = libraries();
  std::lock_guard lock(l.mutex);
  auto known = l.all.find({capability, source});
  if (known == l.all.end()) {
    if (l.all.size() >= kMostKernels) pg::fail_support(pg::format("%zu kernels were generated already", l.all.size()));
    known = l.all.emplace(std::pair(capability, source), load(compile_source(source, capability))).first;
  }
  Loaded& kernel = known->second;
  if (kernel.devices.count(device) == 0) {  // otherwise its first launch would load it, which a capture forbids
    cudaFuncAttributes attributes;
    PG_CUDA(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel.kernel)));
    kernel.devices.insert(device);
  }
  return kernel.kernel;
}

void release_kernels() noexcept {
  if (is_exiting()) return;
  Libraries& l = libraries();
  std::lock_guard lock(l.mutex);
  for (auto& [key, kernel] : l.all) PG_CUDA_WARN(cudaLibraryUnload(kernel.library));
  l.all.clear();
}

}  // namespace cuda::fused
