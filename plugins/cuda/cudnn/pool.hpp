// SPDX-License-Identifier: Apache-2.0
// Two-dimensional pooling by cuDNN, once shapes and attributes have been read. Forward alone: cuDNN asks for x in the
// gradient of an average, too, which does not need it.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "cudnn/conv_layout.hpp"

namespace cuda::dnn {

// Of an average: whether padding counts in the divisor.
enum class PoolKind { kMax, kAveragePadded, kAverage };

struct PoolingShape {
  PoolKind kind = PoolKind::kMax;
  uint32_t dtype = 0;
  Four full{}, pooled{};  // dense
  int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, padding[2] = {};

  // Windows that reach over the padded plane (ceil_mode) divide by what of them lies within it, which cuDNN has no mode
  // for; its pooling kernels are not known to count beyond 32 bits.
  bool is_cudnns() const {
    bool fits =
        count_of(full) > 0 && count_of(pooled) > 0 && count_of(full) < INT32_MAX && count_of(pooled) < INT32_MAX;
    for (int i = 0; i < 2; i++) {
      int64_t room = full[i + 2] + 2 * padding[i] - kernel[i];
      fits = fits && room >= 0 && padding[i] < kernel[i] && pooled[i + 2] == room / stride[i] + 1;
    }
    return fits;
  }
};

// May run on several streams at a time. Addresses need no more alignment than an element.
class Pool {
 public:
  virtual ~Pool() = default;
  virtual void run(cudaStream_t stream, const void* x, void* y, void* workspace) const = 0;
  virtual uint64_t workspace() const = 0;
};

// `what` was asked for, in messages. NULL: cuDNN has no engine for it.
std::unique_ptr<Pool> make_pool(const PoolingShape& shape, uint32_t device, const std::string& what);

}  // namespace cuda::dnn
