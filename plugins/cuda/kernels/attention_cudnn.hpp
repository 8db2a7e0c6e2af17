// SPDX-License-Identifier: Apache-2.0
// Which calls of attention cuDNN serves: 16-bit floats, batches of heads of one width, no mask but that of is_causal,
// no dropout; if an engine takes them. The own kernels serve all.
#pragma once

#include <memory>

#include "cudnn/attention.hpp"
#include "kernel.hpp"

namespace cuda {

class AttentionByCudnn {
 public:
  explicit AttentionByCudnn(const pg::KernelCall& call);
  uint64_t workspace() const { return attention_ == nullptr ? 0 : attention_->workspace(); }
  // False: the own kernels serve the call.
  bool run(const Launch& launch, double scale, bool has_lse) const;

 private:
  std::unique_ptr<dnn::Attention> attention_;
};

}  // namespace cuda
