// SPDX-License-Identifier: Apache-2.0
// Two-dimensional convolution and its gradients, once shapes and attributes have been read.
#pragma once

#include <memory>

#include "linalg/dense.hpp"

namespace pg::cpu {

enum class ConvKind { kForward, kInputGradient, kWeightGradient };

// All three are y [n, o, oh, ow] = x [n, c, h, w] * weight [o, c / groups, kh, kw]: of the three tensors one is asked
// for, the other two are given.
struct ConvShape {
  ConvKind kind;
  uint32_t dtype;
  int64_t n, c, h, w, o, oh, ow, kh, kw, groups;
  int64_t stride[2], padding[2], dilation[2];
  pg_tensor x, weight, y;  // descriptions; shape and stride stay valid while the kernel is being prepared
  bool bias;               // forward only
  int64_t bias_stride;
};

struct ConvData {
  const void *x, *weight, *y;  // the one that `kind` computes is NULL
  const void* bias;
  void* result;
  void* workspace;
  const void* packed_weight;  // as pack() wrote it, or NULL
};

class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual void run(const ConvData& data) = 0;
  virtual uint64_t workspace() const = 0;
  virtual uint64_t packed_bytes() const { return 0; }
  virtual void pack(const void* weight, void* target) { (void)weight, (void)target; }
};

// NULL: oneDNN has no fast kernel for the shape and dtype. Throws dnnl::error for what it refuses otherwise.
std::unique_ptr<Convolution> make_onednn_convolution(const ConvShape& shape);
// Columns and matrix products: float64, and what oneDNN lacks. Also takes empty tensors.
std::unique_ptr<Convolution> make_column_convolution(const ConvShape& shape);
// 16-bit floats where the processor has no arithmetic for them: float32 inside.
std::unique_ptr<Convolution> make_widened_convolution(const ConvShape& shape);

std::unique_ptr<Convolution> make_convolution(const ConvShape& shape);

}  // namespace pg::cpu
