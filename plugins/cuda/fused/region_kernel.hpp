// SPDX-License-Identifier: Apache-2.0
// A region as one generated kernel.
#pragma once

#include "../kernel.hpp"
#include "source.hpp"

namespace cuda::fused {

class RegionKernel final : public Kernel {
 public:
  explicit RegionKernel(const pg::Region& piece);
  void run(const Launch& launch) override;

 private:
  Source source_;
  cudaKernel_t kernel_ = nullptr;
};

}  // namespace cuda::fused
