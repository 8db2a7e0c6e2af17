// SPDX-License-Identifier: Apache-2.0
#include "cudnn/attention_graph.hpp"

namespace cuda::dnn {

AttentionGraph::AttentionGraph(const AttentionShape& shape)
    : s_(shape), scores_{s_.q[0], s_.q[1], s_.q[2], s_.k[2]}, rows_{s_.q[0], s_.q[1], s_.q[2], 1} {
  auto given = [&](AttentionUid uid, const Four& size, const Four& stride, cudnnDataType_t type) {
    return tensor({uid, type, {size.begin(), size.end()}, {stride.begin(), stride.end()}});
  };
  const cudnnDataType_t type = *data_type(s_.dtype);
  Value q = given(kQ, s_.q, s_.q_stride, type), v = given(kV, s_.v, s_.v_stride, type);
  Value turned_k = given(kK, {s_.k[0], s_.k[1], s_.k[3], s_.k[2]},
                         {s_.k_stride[0], s_.k_stride[1], s_.k_stride[3], s_.k_stride[2]}, type);
  Value scores = virtual_tensor(scores_);
  multiply(q, turned_k, scores);
  Value scaled = pointwise(CUDNN_POINTWISE_MUL, virtual_tensor(scores_), scores, number(kScale));
  if (s_.causal) scaled = masked(scaled);

  Value top = reduce(CUDNN_REDUCE_TENSOR_MAX, scaled);
  Value below = pointwise(CUDNN_POINTWISE_SUB, virtual_tensor(scores_), scaled, top);
  Value powers = pointwise(CUDNN_POINTWISE_EXP, virtual_tensor(scores_), below);
  Value sum = reduce(CUDNN_REDUCE_TENSOR_ADD, powers);
  Value log = pointwise(CUDNN_POINTWISE_LOG, virtual_tensor(rows_), sum);
  pointwise(CUDNN_POINTWISE_ADD, given(kLse, rows_, dense_strides(rows_), CUDNN_DATA_FLOAT), top, log);
  Value weights = pointwise(CUDNN_POINTWISE_DIV, virtual_tensor(scores_, type), powers, sum);
  const Four out = {s_.q[0], s_.q[1], s_.q[2], s_.v[3]};
  multiply(weights, v, given(kOut, out, dense_strides(out), type));
}

// A position sees itself and those before it.
AttentionGraph::Value AttentionGraph::masked(Value scores) {
  auto index = [&](int64_t axis) {
    Value place = virtual_tensor(scores_, CUDNN_DATA_INT32);
    return pointwise(CUDNN_POINTWISE_GEN_INDEX, place, scores, nullptr, nullptr, CUDNN_DATA_INT32, axis);
  };
  Value row = index(2), column = index(3);
  Value seen = pointwise(CUDNN_POINTWISE_CMP_GE, virtual_tensor(scores_, CUDNN_DATA_BOOLEAN), row, column, nullptr,
                         CUDNN_DATA_BOOLEAN);
  return pointwise(CUDNN_POINTWISE_BINARY_SELECT, virtual_tensor(scores_), scores, number(kLowest), seen);
}

std::vector<const Descriptor*> AttentionGraph::operations() const {
  std::vector<const Descriptor*> all;
  for (const Descriptor& operation : operations_) all.push_back(&operation);
  return all;
}

AttentionGraph::Value AttentionGraph::tensor(const Tensor& tensor) {
  tensors_.push_back(tensor.describe());
  return &tensors_.back();
}
AttentionGraph::Value AttentionGraph::virtual_tensor(const Four& shape, cudnnDataType_t type) {
  const Four stride = dense_strides(shape);
  Tensor t{next_++, type, {shape.begin(), shape.end()}, {stride.begin(), stride.end()}};
  t.is_virtual = true;
  return tensor(t);
}
AttentionGraph::Value AttentionGraph::number(AttentionUid uid) {
  Tensor t{uid, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}};
  t.by_value = true;
  return tensor(t);
}

Descriptor& AttentionGraph::operation(cudnnBackendDescriptorType_t type) {
  operations_.emplace_back(type);
  return operations_.back();
}

void AttentionGraph::multiply(Value a, Value b, Value c) {
  Descriptor& how = parts_.emplace_back(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT).finalize();
  Descriptor& product = operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  product.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how).set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, *a);
  product.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, *b).set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, *c).finalize();
}

AttentionGraph::Value AttentionGraph::pointwise(cudnnPointwiseMode_t mode, Value y, Value x, Value b, Value t,
                                                cudnnDataType_t precision, int64_t axis) {
  Descriptor& how = parts_.emplace_back(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, precision);
  if (axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
  how.finalize();
  Descriptor& work = operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  work.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how).set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *x);
  if (b != nullptr) work.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  if (t != nullptr) work.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *t);
  work.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *y).finalize();
  return y;
}

AttentionGraph::Value AttentionGraph::reduce(cudnnReduceTensorOp_t mode, Value x) {
  Descriptor& how = parts_.emplace_back(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, mode);
  how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT).finalize();
  Value y = virtual_tensor(rows_);
  operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, *x)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, *y)
      .finalize();
  return y;
}

}  // namespace cuda::dnn
