// SPDX-License-Identifier: Apache-2.0
// Which pooling calls cuDNN serves: images in dense tensors, windows that stay within the padded plane, averages,
// largest elements whose places nobody asked for; if an engine takes them. The own kernels serve all, and gradients.
#pragma once

#include <memory>

#include "cudnn/pool.hpp"
#include "kernels/pool.cuh"

namespace cuda {

class PoolByCudnn {
 public:
  PoolByCudnn(const pg::KernelCall& call, dnn::PoolKind kind, const PoolShape& shape);
  uint64_t workspace() const { return pool_ == nullptr ? 0 : pool_->workspace(); }
  // False: the own kernels serve the call.
  bool run(const Launch& launch) const;

 private:
  std::unique_ptr<dnn::Pool> pool_;
};

}  // namespace cuda
