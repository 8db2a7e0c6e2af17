// SPDX-License-Identifier: Apache-2.0
// Which calls of batch_norm and batch_norm_grad cuDNN serves: those in training whose tensors are dense and whose
// parameters and statistics are float32, if an engine takes them. The own kernels serve all.
#pragma once

#include <memory>

#include "cudnn/norm.hpp"
#include "kernel.hpp"

namespace cuda {

class NormByCudnn {
 public:
  explicit NormByCudnn(const pg::KernelCall& call);
  uint64_t workspace() const { return norm_ == nullptr ? 0 : norm_->workspace(); }
  // False: this launch is the own kernels'.
  bool run(const Launch& launch) const;

 private:
  bool gradient_;
  uint32_t outputs_;
  pg::Runtime<double> momentum_, eps_;  // forward only
  std::unique_ptr<dnn::Norm> norm_;
};

}  // namespace cuda
