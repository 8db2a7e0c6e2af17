// SPDX-License-Identifier: Apache-2.0
// Convolution over one to three axes and its gradients, once shapes and attributes have been read.
#pragma once

#include <memory>

#include "linalg/dense.hpp"

namespace pg {
class KernelCall;
}

namespace pg::cpu {

enum class ConvKind { kForward, kInputGradient, kWeightGradient };

// How x, weight or y lies: [n, c, h, w] or [n, c, d, h, w]. Sequences are images of one row.
struct ConvOperand {
  uint32_t rank = 0;
  int64_t shape[5] = {}, stride[5] = {};

  ConvOperand() = default;
  explicit ConvOperand(const pg_tensor& t) {
    for (uint32_t i = 0; i < t.rank; i++) {
      if (t.rank == 3 && i == 2) shape[rank] = 1, stride[rank++] = t.shape[2] * t.stride[2];
      shape[rank] = t.shape[i], stride[rank++] = t.stride[i];
    }
  }
  int64_t count() const {
    int64_t product = 1;
    for (uint32_t i = 0; i < rank; i++) product *= shape[i];
    return product;
  }
  // Whether the axes lie in the order 0, 1, 2, ... or, with channels last, 0, 2, ..., 1. Strides of axes of size 1 say
  // nothing.
  bool dense() const { return lies(false); }
  bool channels_last() const { return lies(true) && shape[1] > 1; }

 private:
  bool lies(bool last) const {
    int64_t step = 1;
    for (uint32_t i = 0; i < rank; i++) {
      uint32_t axis = !last ? rank - 1 - i : i == 0 ? 1 : i + 1 == rank ? 0 : rank - i;
      if (shape[axis] != 1 && stride[axis] != step) return false;
      step *= shape[axis];
    }
    return true;
  }
};

// All kinds are y [n, o, ...] = x [n, c, ...] * weight [o, c / groups, ...]: of the three tensors one is asked for, the
// other two are given.
struct ConvShape {
  ConvKind kind;
  uint32_t dtype;
  int64_t n, c, o, groups;
  int64_t in[3], out[3], kernel[3];  // sizes of depth, height, width; ones in front
  int64_t stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};  // padding: before each axis
  ConvOperand x, weight, y;
  bool bias;  // for the result's channels; of the weight gradient, which then is `alone`: its gradient too
  int64_t bias_stride;
  bool relu;  // the result becomes max(result, 0), after rounding; of kForward alone
  // A part of a batch: run on the calling thread, and of the weight gradient float32 whatever dtype is, to be added up.
  bool alone = false;

  int64_t in_count() const { return in[0] * in[1] * in[2]; }
  int64_t out_count() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  // Winograd's way: filters of 3x3 that slide by one, results in tiles of 4x4, channels enough to fill vectors.
  bool suits_winograd() const {
    for (int axis : {1, 2}) {
      if (kernel[axis] != 3 || stride[axis] != 1 || dilation[axis] != 1) return false;
    }
    return groups == 1 && x.rank == 4 && c >= 16 && o >= 16;
  }
  int64_t image_tiles() const { return ((out[1] + 3) / 4) * ((out[2] + 3) / 4); }
  const ConvOperand& result() const {
    return kind == ConvKind::kForward ? y : kind == ConvKind::kInputGradient ? x : weight;
  }
};

struct ConvData {
  const void *x, *weight, *y;  // the one that `kind` computes is NULL
  const void* bias;
  void* result;
  void* workspace;
  const void* packed_weight;  // as pack() wrote it, or NULL
  const void* packed_dy;      // what takes the place of y, where a gradient is given it in oneDNN's layout
  void* dbias;                // float32 [o], of a weight gradient with `bias`
};

class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual void run(const ConvData& data) = 0;
  virtual uint64_t workspace() const = 0;
  virtual uint64_t packed_bytes() const { return 0; }
  virtual void pack(const void* weight, void* target) { (void)weight, (void)target; }
  virtual bool activates() const { return false; }  // whether run() sees to the shape's relu
};

// oneDNN's, or own loops of Winograd's way where they take less time. NULL: neither is fast for the shape and dtype.
// Throws dnnl::error for what oneDNN refuses otherwise.
std::unique_ptr<Convolution> make_onednn_convolution(const ConvShape& shape);
// The same by parts of the batch; NULL where that does not pay or there is no kernel.
std::unique_ptr<Convolution> make_split_convolution(const ConvShape& shape);
// Columns and matrix products: float64, and what oneDNN lacks. Also takes empty tensors.
std::unique_ptr<Convolution> make_column_convolution(const ConvShape& shape);
// 16-bit floats where the processor has no arithmetic for them: float32 inside.
std::unique_ptr<Convolution> make_widened_convolution(const ConvShape& shape);

// What a call of conv1d, conv2d or conv3d, or of one behind an activation, asks for.
ConvShape read_convolution(const KernelCall& call);

// The fastest of these, which does all that the shape asks for.
std::unique_ptr<Convolution> make_convolution(const ConvShape& shape);

}  // namespace pg::cpu
