// SPDX-License-Identifier: Apache-2.0
// One elementwise operator as a generated kernel: what there is no loop for, as expressions of several primitives.
#pragma once

#include "../kernel.hpp"

namespace cuda::fused {

// Refuses what no kernel can be generated for, and all where there is no NVRTC.
void check_one_call(const pg::KernelCall& call);
pg::Kernel* prepare_one_call(const pg::KernelCall& call);

}  // namespace cuda::fused
