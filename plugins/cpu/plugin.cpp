// SPDX-License-Identifier: Apache-2.0
// The CPU plugin: one device, and the kernels that registered themselves.
#include "device.hpp"
#include "fused/claim.hpp"
#include "perigee/kernel.hpp"
#include "simd.hpp"

namespace cpu {

class Plugin {
 public:
  Plugin() {
    if (const char* reason = choose_simd()) pg::fail_support(reason);
  }
  const void* iface(const char* id) {
    if (std::strcmp(id, PG_IFACE_DEVICE) == 0) return &pg::device_table<Plugin>;
    if (std::strcmp(id, PG_IFACE_KERNELS) == 0) return pg::kernel_table("cpu");
    if (std::strcmp(id, PG_IFACE_COMPILER) == 0) return &pg::compiler_table<RegionCompiler, "cpu">;
    return nullptr;
  }
  Device& device() { return device_; }

 private:
  Device device_;
};

}  // namespace cpu

PG_PLUGIN(cpu::Plugin, "cpu", "0.1.0", "device,kernels,compiler");
