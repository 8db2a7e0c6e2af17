// SPDX-License-Identifier: Apache-2.0
#include "cudnn/conv_graph.hpp"

#include <algorithm>

namespace cuda::dnn {
namespace {

struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, conv, x, weight, y;
};
constexpr OperationNames kForwardNames = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
constexpr OperationNames kInputNames = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
constexpr OperationNames kWeightNames = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};

Tensor tensor(int64_t uid, cudnnDataType_t type, const Sizes& shape, const Sizes& stride, int64_t alignment) {
  return {uid, type, {shape.begin(), shape.end()}, {stride.begin(), stride.end()}, alignment, false, false};
}

}  // namespace

ConvGraph::ConvGraph(const ConvShape& shape, const Layouts& layouts, bool fused_bias, int64_t alignment)
    : s_(shape), type_(*data_type(shape.dtype)), fused_bias_(fused_bias) {
  x_ = tensor(kX, type_, s_.x, told_strides(s_.x, layouts.x), alignment).describe();
  weight_ = tensor(kWeight, type_, s_.weight, told_strides(s_.weight, layouts.weight), alignment).describe();
  y_ = tensor(kY, type_, s_.y, told_strides(s_.y, layouts.y), alignment).describe();
  if (fused_bias_) {
    auto own = std::max<int64_t>(alignment, sizeof(float));  // of numbers wider than y's
    Tensor sums = tensor(kSums, CUDNN_DATA_FLOAT, s_.y, told_strides(s_.y, layouts.y), own);
    sums.is_virtual = true;
    sums_ = sums.describe();
  }
  convolve();
  if (fused_bias_) add(alignment);
}

std::vector<const Descriptor*> ConvGraph::operations() const {
  if (fused_bias_) return {&convolution_, &addition_};
  return {&convolution_};
}

void ConvGraph::convolve() {
  window_ = Descriptor(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  window_.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute_type(s_.dtype));
  window_.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  window_.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(s_.axes()));
  window_.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span<const int64_t>(s_.dilation, s_.axes()));
  window_.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span<const int64_t>(s_.stride, s_.axes()));
  window_.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span<const int64_t>(s_.padding, s_.axes()));
  window_.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span<const int64_t>(s_.behind, s_.axes()));
  window_.finalize();
  const OperationNames& names = s_.kind == ConvKind::kForward         ? kForwardNames
                                : s_.kind == ConvKind::kInputGradient ? kInputNames
                                                                      : kWeightNames;
  Descriptor& op = convolution_ = Descriptor(names.type);
  op.set(names.conv, window_).set(names.x, x_).set(names.weight, weight_).set(names.y, fused_bias_ ? sums_ : y_);
  if (s_.dtype == PG_F64)
    op.set(names.alpha, CUDNN_TYPE_DOUBLE, 1.0).set(names.beta, CUDNN_TYPE_DOUBLE, 0.0);
  else
    op.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f).set(names.beta, CUDNN_TYPE_FLOAT, 0.0f);
  op.finalize();
}

void ConvGraph::add(int64_t alignment) {
  sum_ = Descriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  sum_.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_ADD);
  sum_.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, compute_type(s_.dtype));
  sum_.finalize();
  Sizes shape = s_.y;
  for (size_t i = 0; i < shape.size(); i++) shape[i] = i == 1 ? s_.y[1] : 1;
  bias_ = tensor(kBias, type_, shape, dense_strides(shape), alignment).describe();
  addition_ = Descriptor(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  addition_.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, sum_).set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, sums_);
  addition_.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, bias_).set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y_);
  addition_.finalize();
}

}  // namespace cuda::dnn
