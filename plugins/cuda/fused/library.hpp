// SPDX-License-Identifier: Apache-2.0
// Generated kernels, compiled and loaded once a source: those of equal text, for devices of one kind, are one.
#pragma once

#include <string>

#include "../runtime.hpp"

namespace cuda::fused {

// For launches on the device, which may be captured: the code is there already. Refuses where NVRTC cannot, and beyond
// so many kernels: loaded code stays until the plugin closes, for a plan that was captured may still launch it.
cudaKernel_t find_kernel(uint32_t device, const std::string& source);
constexpr size_t kMostKernels = 2048;

// When the plugin closes.
void release_kernels() noexcept;

}  // namespace cuda::fused
