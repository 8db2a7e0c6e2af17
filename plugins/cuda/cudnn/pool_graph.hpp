// SPDX-License-Identifier: Apache-2.0
// Pooling as an operation of cuDNN's graph API (a resampling). Making it needs neither a GPU nor a driver.
#pragma once

#include "cudnn/descriptor.hpp"
#include "cudnn/pool.hpp"

namespace cuda::dnn {

// Names of the tensors: x and y.
enum PoolUid : int64_t { kFull = 1, kPooled };

class PoolGraph {
 public:
  explicit PoolGraph(const PoolingShape& shape);
  std::vector<const Descriptor*> operations() const { return {&operation_}; }

 private:
  void describe_windows(const PoolingShape& s);

  Descriptor full_, pooled_, windows_, operation_;
};

}  // namespace cuda::dnn
