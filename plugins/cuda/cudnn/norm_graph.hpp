// SPDX-License-Identifier: Apache-2.0
// Batch normalisation and its gradient as an operation of cuDNN's graph API. Making it needs neither a GPU nor a
// driver.
#pragma once

#include "cudnn/descriptor.hpp"
#include "cudnn/norm.hpp"

namespace cuda::dnn {

// Names of the tensors. Running statistics have two: cuDNN is told nothing of addresses that are equal.
enum NormUid : int64_t {
  kNormX = 1,
  kNormY,
  kNormDy,
  kNormDx,
  kNormWeight,
  kNormBias,
  kNormMean,
  kNormInvstd,
  kNormDweight,
  kNormDbias,
  kNormEps,
  kNormMomentum,
  kNormOldMean,
  kNormOldVar,
  kNormNewMean,
  kNormNewVar,
};

constexpr int64_t kNormAlignment = 16;  // bytes, of all addresses

class NormGraph {
 public:
  explicit NormGraph(const NormShape& shape);
  std::vector<const Descriptor*> operations() const { return {&operation_}; }

 private:
  void add(cudnnBackendAttributeName_t name, NormUid uid);         // of the shape of x
  void add_vector(cudnnBackendAttributeName_t name, NormUid uid);  // by channel
  void add_number(cudnnBackendAttributeName_t name, NormUid uid);  // by value
  void add(cudnnBackendAttributeName_t name, const Tensor& tensor);
  void describe_forward();
  void describe_gradient();

  NormShape s_;
  std::vector<Descriptor> tensors_;
  Descriptor operation_;
};

}  // namespace cuda::dnn
