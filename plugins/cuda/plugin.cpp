// SPDX-License-Identifier: Apache-2.0
#include "plugin.hpp"

#include <atomic>

#include "fused/claim.hpp"
#include "perigee/capture.hpp"
#include "perigee/kernel.hpp"

namespace cuda {

void release_vendor_handles() noexcept;  // vendor.hpp, whose headers are large
namespace fused {
void release_kernels() noexcept;
}

// The runtime's state (current devices, lost devices) is the process's, so there is one plugin object at a time.
static std::atomic<bool> is_open{false};

Plugin::Plugin() {
  if (is_open.exchange(true)) throw pg::Error(PG_E_FAILED_PRECONDITION, "the CUDA plugin is open already");
  forget_lost();
}

Plugin::~Plugin() {
  fused::release_kernels();
  release_vendor_handles();
  is_open = false;
}

const void* Plugin::iface(const char* id) {
  if (std::strcmp(id, PG_IFACE_DEVICE) == 0) return &pg::device_table<Plugin>;
  if (std::strcmp(id, PG_IFACE_KERNELS) == 0) return timed_kernels(*pg::kernel_table(Device::type));
  if (std::strcmp(id, PG_IFACE_PROFILER) == 0) return &pg::profiler_table<Plugin>;
  if (std::strcmp(id, PG_IFACE_CAPTURE) == 0) return &pg::capture_table;
  if (std::strcmp(id, PG_IFACE_COMPILER) == 0) return &pg::compiler_table<fused::RegionCompiler, "cuda">;
  return nullptr;
}

}  // namespace cuda

PG_PLUGIN(cuda::Plugin, "cuda", "0.1.0", "device,kernels,profiler,compiler");
