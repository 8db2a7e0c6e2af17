// SPDX-License-Identifier: Apache-2.0
// Attention in one kernel by cuDNN, whose scores never reach memory (Dao and others, "FlashAttention", 2022): forward,
// of 16-bit floats, with or without the mask of is_causal. Its gradient is left to the own kernels: cuDNN's adds up dq
// in no order that could be told.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "cudnn/conv_layout.hpp"
#include "perigee/plugin.h"

namespace cuda::dnn {

struct AttentionShape {
  uint32_t dtype = 0;
  Four q{}, k{}, v{};  // batch, heads, positions, width
  Four q_stride{}, k_stride{}, v_stride{};
  bool causal = false;

  // What cuDNN's engines take; addresses must be aligned then.
  bool is_cudnns() const {
    bool fits = dtype == PG_F16 || dtype == PG_BF16;
    for (const Four* shape : {&q, &k, &v}) {
      for (int64_t size : *shape) fits = fits && size > 0 && size < INT32_MAX;
      fits = fits && (*shape)[3] % 8 == 0 && (*shape)[3] <= 128;
    }
    for (const Four* stride : {&q_stride, &k_stride, &v_stride}) {
      fits = fits && (*stride)[3] == 1;
      for (int i = 0; i < 3; i++) fits = fits && (*stride)[i] > 0 && (*stride)[i] % 8 == 0;
    }
    return fits;
  }
};
constexpr uint64_t kAttentionAlignment = 16;

struct AttentionData {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void *out = nullptr, *lse = nullptr, *workspace = nullptr;  // lse: of float32, or NULL
  float scale = 1;
};

// May run on several streams at a time.
class Attention {
 public:
  virtual ~Attention() = default;
  // False: the addresses are not aligned, and nothing was done.
  virtual bool run(cudaStream_t stream, const AttentionData& data) const = 0;
  virtual uint64_t workspace() const = 0;
};

// `what` was asked for, in messages. NULL: cuDNN has no engine for it.
std::unique_ptr<Attention> make_attention(const AttentionShape& shape, uint32_t device, const std::string& what);

}  // namespace cuda::dnn
