// SPDX-License-Identifier: Apache-2.0
// The processor's compiler of regions.
#pragma once

#include "perigee/compiler.hpp"

namespace cpu {

struct RegionCompiler {
  static void claim(const pg::Region& region, uint32_t* cluster);
  static pg::Kernel* compile(const pg::Region& piece, pg::Plan& plan);
};

}  // namespace cpu
