// SPDX-License-Identifier: Apache-2.0
// Softmax of lines and what is made of it: kernels/softmax.cu carries it out for kernels/cross_entropy.cu too.
#pragma once

#include "kernel.hpp"
#include "line_shape.hpp"

namespace cuda {

constexpr int64_t kLossBlocks = 1024;  // at most; each leaves one of these:
struct LossSum {
  double loss, weight;
};

// Class weights and targets of a cross entropy.
struct LossArguments {
  const char* target = nullptr;
  const char* weight = nullptr;  // of classes; absent: 1
  char* loss = nullptr;          // of lines; absent: only their sums are wanted
  LossSum* sums = nullptr;       // one a block
  uint32_t target_dtype = 0, weight_dtype = 0, loss_dtype = 0;
  int64_t weight_stride = 0, ignore = 0;
  double smoothing = 0;
  FaultSite faults;
};

// Operands of the shape: y, x, target, loss. y may be absent. loss: NULL for none. Returns the number of blocks.
int64_t run_softmax(const Launch& launch, uint32_t dtype, const LineShape& shape, bool log, const void* x, void* y,
                    const LossArguments* loss);

}  // namespace cuda
