// SPDX-License-Identifier: Apache-2.0
// pg.compiler/0 of CUDA devices: elementwise nodes as one kernel, by NVRTC.
#pragma once

#include "perigee/compiler.hpp"

namespace cuda::fused {

struct RegionCompiler {
  static void claim(const pg::Region& region, uint32_t* cluster);
  static pg::Kernel* compile(const pg::Region& piece, pg::Plan& plan);
};

// The nodes that are wanted together, whether or not there is an NVRTC.
void claim_nodes(const pg::Region& region, uint32_t* cluster);

}  // namespace cuda::fused
