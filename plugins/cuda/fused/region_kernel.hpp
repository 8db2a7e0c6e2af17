// SPDX-License-Identifier: Apache-2.0
// A region as one generated kernel, or, where it is part of a captured plan, as another one that finds the numbers of
// the call in a block on the device (runtime_block.hpp).
#pragma once

#include <mutex>

#include "../kernel.hpp"
#include "source.hpp"

namespace cuda::fused {

class RegionKernel final : public Kernel {
 public:
  explicit RegionKernel(const pg::Region& piece);
  void run(const Launch& launch) override;
  bool renews() const override { return !source_.numbers.empty(); }

 private:
  cudaKernel_t renewed();

  Source source_;
  uint32_t device_;
  cudaKernel_t kernel_ = nullptr, renewed_ = nullptr;
  std::once_flag wanted_;
};

}  // namespace cuda::fused
