// SPDX-License-Identifier: Apache-2.0
// A convolution as operations of cuDNN's graph API. Making it needs neither a GPU nor a driver.
#pragma once

#include "cudnn/conv_layout.hpp"
#include "cudnn/descriptor.hpp"

namespace cuda::dnn {

// Names of the tensors.
enum ConvUid : int64_t { kX = 1, kWeight, kY, kBias, kSums };

class ConvGraph {
 public:
  ConvGraph() = default;
  // `fused_bias`: the sums stay in float32 until the bias is added.
  ConvGraph(const ConvShape& shape, const Layouts& layouts, bool fused_bias, int64_t alignment);
  std::vector<const Descriptor*> operations() const;

 private:
  void convolve();
  void add(int64_t alignment);

  ConvShape s_;
  cudnnDataType_t type_{};
  bool fused_bias_ = false;
  Descriptor x_, weight_, y_, sums_, bias_, window_, sum_, convolution_, addition_;
};

}  // namespace cuda::dnn
