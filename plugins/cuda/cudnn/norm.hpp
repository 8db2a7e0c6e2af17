// SPDX-License-Identifier: Apache-2.0
// Batch normalisation in training and its gradient by cuDNN, once shapes and attributes have been read.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "cudnn/conv_layout.hpp"

namespace cuda::dnn {

enum class NormKind { kForward, kGradient };

struct NormShape {
  NormKind kind = NormKind::kForward;
  uint32_t dtype = 0;
  Four x{};              // dense; statistics and parameters are [x[1]], dense, in float32
  bool running = false;  // running statistics are moved; forward only

  int64_t channels() const { return x[1]; }
};

struct NormData {
  const void *x, *weight;
  const void* dy;         // gradient
  const void* bias;       // forward
  void *mean, *invstd;    // forward: results, which may be NULL
  void *dweight, *dbias;  // gradient: results, which may be NULL
  void* result;           // y or dx
  void *running_mean, *running_var;
  float momentum, eps;
  void* workspace;
};

// May run on several streams at a time.
class Norm {
 public:
  virtual ~Norm() = default;
  // Whether all addresses are as cuDNN was told. Where they are not, run() must not be called.
  virtual bool takes(const NormData& data) const = 0;
  virtual void run(cudaStream_t stream, const NormData& data) const = 0;
  virtual uint64_t workspace() const = 0;
};

// `what` was asked for, in messages. NULL: cuDNN has no engine for it.
std::unique_ptr<Norm> make_norm(const NormShape& shape, uint32_t device, const std::string& what);

}  // namespace cuda::dnn
