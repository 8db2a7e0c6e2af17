// SPDX-License-Identifier: Apache-2.0
// Images and volumes whose channels lie innermost: [n, c, h, w] that is [n, h, w, c] in memory.
#pragma once

#include "linalg/dense.hpp"
#include "perigee/kernel.hpp"

namespace pg::cpu {

// A tensor with its channels as the last axis: row-major where it lies channels-last. Valid while the tensor is.
class ChannelsBehind {
 public:
  explicit ChannelsBehind(const pg_tensor& t) : tensor_(t) {
    for (uint32_t i = 0; i < t.rank; i++) {
      const uint32_t from = i == 0 ? 0 : i + 1 == t.rank ? 1 : i + 1;
      shape_[i] = t.shape[from], stride_[i] = t.stride[from];
    }
    tensor_.shape = shape_, tensor_.stride = stride_;
  }
  ChannelsBehind(const ChannelsBehind&) = delete;
  ChannelsBehind& operator=(const ChannelsBehind&) = delete;
  const pg_tensor& tensor() const { return tensor_; }

 private:
  pg_tensor tensor_;
  int64_t shape_[PG_MAX_RANK] = {}, stride_[PG_MAX_RANK] = {};
};

// What lies in both orders is row-major.
inline bool lies_channels_last(const pg_tensor& t) {
  return t.rank >= 3 && t.rank <= 5 && !is_dense(t) && is_dense(ChannelsBehind(t).tensor());
}
// An input as it is wanted for a result that lies so, or row-major.
inline DenseInput dense_input(const pg_tensor& t, bool channels_last) {
  return channels_last ? DenseInput(ChannelsBehind(t).tensor()) : DenseInput(t);
}

// A kernel that is Last where the first result is to lie channels-last, Plain else.
template <class Plain, class Last>
int add_either(const char* op, uint64_t spares = 0) {
  return add_kernel(
      {{PG_SIZE(pg_kernel_info, spares), PG_KERNEL_ANY_ORDER, op, 0, spares},
       [](const KernelCall& call) { lies_channels_last(call.out(0)) ? Last::supports(call) : Plain::supports(call); },
       [](const KernelCall& call, Plan& plan) -> Kernel* {
         if (lies_channels_last(call.out(0))) return new Last(call, plan);
         return new Plain(call, plan);
       }});
}

}  // namespace pg::cpu
