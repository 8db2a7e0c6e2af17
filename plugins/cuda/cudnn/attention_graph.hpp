// SPDX-License-Identifier: Apache-2.0
// Attention as a graph of cuDNN's operations: scores, their scale, the mask, a softmax and the weighted sum, of which
// all but the results are passed on within the graph. Engines know the whole by this form, to which the logarithms of
// the sums belong. Making it needs neither a GPU nor a driver.
#pragma once

#include <deque>

#include "cudnn/attention.hpp"
#include "cudnn/descriptor.hpp"

namespace cuda::dnn {

// Names of the tensors that have addresses; lowest and scale are the host's.
enum AttentionUid : int64_t { kQ = 1, kK, kV, kOut, kLse, kScale, kLowest, kFirstVirtual };

class AttentionGraph {
 public:
  explicit AttentionGraph(const AttentionShape& shape);
  std::vector<const Descriptor*> operations() const;

 private:
  using Value = const Descriptor*;
  Value tensor(const Tensor& tensor);
  Value virtual_tensor(const Four& shape, cudnnDataType_t type = CUDNN_DATA_FLOAT);
  Value number(AttentionUid uid);
  Descriptor& operation(cudnnBackendDescriptorType_t type);
  void multiply(Value a, Value b, Value c);
  Value pointwise(cudnnPointwiseMode_t mode, Value y, Value x, Value b = nullptr, Value t = nullptr,
                  cudnnDataType_t precision = CUDNN_DATA_FLOAT, int64_t axis = -1);
  Value reduce(cudnnReduceTensorOp_t mode, Value x);
  Value masked(Value scores);

  AttentionShape s_;
  Four scores_, rows_;  // shapes of q k', and of one number a row of it
  int64_t next_ = kFirstVirtual;
  std::deque<Descriptor> tensors_, parts_, operations_;  // that stay where they are
};

}  // namespace cuda::dnn
