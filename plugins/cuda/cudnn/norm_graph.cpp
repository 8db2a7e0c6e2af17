// SPDX-License-Identifier: Apache-2.0
#include "cudnn/norm_graph.hpp"

namespace cuda::dnn {
namespace {

Tensor tensor(NormUid uid, cudnnDataType_t type, const Four& shape) {
  Four stride = dense_strides(shape);
  return {uid, type, {shape.begin(), shape.end()}, {stride.begin(), stride.end()}, kNormAlignment};
}

}  // namespace

NormGraph::NormGraph(const NormShape& shape) : s_(shape) {
  if (s_.kind == NormKind::kForward)
    describe_forward();
  else
    describe_gradient();
  operation_.finalize();
}

void NormGraph::describe_forward() {
  operation_ = Descriptor(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
  operation_.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, CUDNN_BATCH_NORM);
  operation_.set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, CUDNN_NORM_FWD_TRAINING);
  add(CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, kNormX);
  add(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, kNormY);
  add_vector(CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, kNormWeight);
  add_vector(CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, kNormBias);
  add_vector(CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, kNormMean);
  add_vector(CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, kNormInvstd);
  add_number(CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, kNormEps);
  if (!s_.running) return;
  add_number(CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC, kNormMomentum);
  add_vector(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, kNormOldMean);
  add_vector(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC, kNormOldVar);
  add_vector(CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, kNormNewMean);
  add_vector(CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC, kNormNewVar);
}

void NormGraph::describe_gradient() {
  operation_ = Descriptor(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR);
  operation_.set(CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, CUDNN_BATCH_NORM);
  add(CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, kNormX);
  add(CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, kNormDy);
  add(CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, kNormDx);
  add_vector(CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, kNormWeight);
  add_vector(CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, kNormMean);
  add_vector(CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, kNormInvstd);
  add_vector(CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, kNormDweight);
  add_vector(CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, kNormDbias);
}

void NormGraph::add(cudnnBackendAttributeName_t name, NormUid uid) {
  add(name, tensor(uid, *data_type(s_.dtype), s_.x));
}
void NormGraph::add_vector(cudnnBackendAttributeName_t name, NormUid uid) {
  add(name, tensor(uid, CUDNN_DATA_FLOAT, {1, s_.channels(), 1, 1}));
}
void NormGraph::add_number(cudnnBackendAttributeName_t name, NormUid uid) {
  Tensor number = tensor(uid, CUDNN_DATA_FLOAT, {1, 1, 1, 1});
  number.by_value = true;
  add(name, number);
}
void NormGraph::add(cudnnBackendAttributeName_t name, const Tensor& tensor) {
  tensors_.push_back(tensor.describe());
  operation_.set(name, tensors_.back());
}

}  // namespace cuda::dnn
