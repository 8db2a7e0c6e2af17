// SPDX-License-Identifier: Apache-2.0
// Convolution of images and volumes and its gradients, once shapes and attributes have been read.
#pragma once

#include <memory>

#include "cudnn/conv_layout.hpp"
#include "kernel.hpp"

namespace cuda::dnn {

struct ConvData {
  const void *x, *weight, *y;  // the one that is asked for is NULL
  const void* bias;
  void* result;
  void* workspace;
};

// May run on several streams at a time.
class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual void run(cudaStream_t stream, const ConvData& data) const = 0;
  virtual uint64_t workspace() const { return 0; }
};

// NULL: cuDNN has no engine for it that keeps our promises. `what` was asked for, in messages.
std::unique_ptr<Convolution> make_cudnn_convolution(const ConvShape& shape, uint32_t device, const std::string& what);
// Own kernels, for every shape, stride and floating dtype: slower by far, and always there.
std::unique_ptr<Convolution> make_direct_convolution(const ConvShape& shape);

std::unique_ptr<Convolution> make_convolution(const ConvShape& shape, uint32_t device, const std::string& what);

}  // namespace cuda::dnn
