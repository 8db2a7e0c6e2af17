// SPDX-License-Identifier: Apache-2.0
#include <mutex>

#include "claim.hpp"
#include "nvrtc.hpp"
#include "region_kernel.hpp"

namespace cuda::fused {

void RegionCompiler::claim(const pg::Region& region, uint32_t* cluster) {
  if (const std::string& defect = nvrtc_defect(); !defect.empty()) {
    static std::once_flag told;
    std::call_once(told, [&] {
      pg::log(PG_LOG_WARNING, "cuda: compiled functions launch each operator alone, for there is no NVRTC: " + defect);
    });
    return;
  }
  claim_nodes(region, cluster);
}

pg::Kernel* RegionCompiler::compile(const pg::Region& piece, pg::Plan& plan) {
  if (has_streams(piece)) return new StreamKernel(piece, plan);
  if (has_lines(piece)) return new LineKernel(piece);
  return new RegionKernel(piece);
}

}  // namespace cuda::fused
