// SPDX-License-Identifier: Apache-2.0
// Tensors and operations, read out of descriptors.
#include "cudnn_store.hpp"

namespace standin::dnn {
namespace {

struct Names {
  int alpha, beta, conv, x, weight, y;
};

Names names_of(cudnnBackendDescriptorType_t type) {
  switch (type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    default:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
  }
}

double factor(const Object& operation, int name) {
  const Attribute& a = *operation.find(name);
  return a.type == CUDNN_TYPE_DOUBLE ? *a.values<double>() : *a.values<float>();
}

bool flag(const Object& tensor, int name) { return tensor.find(name) != nullptr && tensor.value<bool>(name); }

}  // namespace

bool is_tensor(const Object* part) { return part != nullptr && part->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR; }

Number number_of(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT: return Number::kF32;
    case CUDNN_DATA_DOUBLE: return Number::kF64;
    case CUDNN_DATA_HALF: return Number::kF16;
    case CUDNN_DATA_BFLOAT16: return Number::kBf16;
    case CUDNN_DATA_INT32: return Number::kI32;
    case CUDNN_DATA_BOOLEAN: return Number::kB8;
    default: return Number::kNone;
  }
}

TensorView::TensorView(const Object& t)
    : uid(t.number(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
      alignment(t.number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)),
      type(number_of(t.value<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE))),
      shape(t.numbers(CUDNN_ATTR_TENSOR_DIMENSIONS)),
      stride(t.numbers(CUDNN_ATTR_TENSOR_STRIDES)),
      is_virtual(flag(t, CUDNN_ATTR_TENSOR_IS_VIRTUAL)),
      by_value(flag(t, CUDNN_ATTR_TENSOR_IS_BY_VALUE)) {}

int64_t TensorView::count() const {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

int64_t TensorView::extent() const {
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); i++) last += (shape[i] - 1) * stride[i];
  return last + 1;
}
bool TensorView::is_dense() const {
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0; step *= shape[i]) {
    if (shape[i] != 1 && stride[i] != step) return false;
  }
  return true;
}
bool TensorView::is_channels_last() const {
  int64_t step = shape[1];
  if (shape[1] != 1 && stride[1] != 1) return false;
  for (size_t i = shape.size(); i-- > 0;) {
    if (i == 1) continue;
    if (shape[i] != 1 && stride[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

bool is_convolution(const Object& operation) {
  return operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
         operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
         operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}
bool is_pointwise(const Object& operation) { return operation.type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR; }

ConvolutionView::ConvolutionView(const Object& operation)
    : kind(operation.type),
      x(*operation.part(names_of(kind).x)),
      weight(*operation.part(names_of(kind).weight)),
      y(*operation.part(names_of(kind).y)),
      alpha(factor(operation, names_of(kind).alpha)),
      beta(factor(operation, names_of(kind).beta)) {
  const Object& window = *operation.part(names_of(kind).conv);
  stride = window.numbers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  padding = window.numbers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  dilation = window.numbers(CUDNN_ATTR_CONVOLUTION_DILATIONS);
}

const TensorView& ConvolutionView::result() const {
  if (kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) return y;
  return kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? x : weight;
}

cudnnStatus_t check_convolution(const Object& operation) {
  Names names = names_of(operation.type);
  for (int name : {names.x, names.weight, names.y}) {
    if (!is_tensor(operation.part(name))) return refuse(CUDNN_STATUS_BAD_PARAM, "not a tensor");
  }
  const Object* window = operation.part(names.conv);
  if (window == nullptr || window->type != CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "not a convolution");
  }
  ConvolutionView c(operation);
  auto wrong = [](const char* why) { return refuse(CUDNN_STATUS_BAD_PARAM, why); };
  const size_t axes = c.stride.size();
  if (axes < 2 || axes > 3) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "two or three spatial dimensions");
  if (c.x.shape.size() != axes + 2 || c.weight.shape.size() != axes + 2 || c.y.shape.size() != axes + 2) {
    return wrong("the tensors' dimensions");
  }
  std::vector<int64_t> after = window->numbers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  bool channels = c.x.shape[1] % c.weight.shape[1] == 0 && c.weight.shape[0] % c.groups() == 0;
  if (!channels || c.y.shape[0] != c.x.shape[0] || c.y.shape[1] != c.weight.shape[0]) return wrong("channels");
  for (size_t i = 0; i < axes; i++) {
    int64_t room = c.x.shape[i + 2] + c.padding[i] + after[i] - c.dilation[i] * (c.weight.shape[i + 2] - 1) - 1;
    if (room < 0 || c.y.shape[i + 2] != room / c.stride[i] + 1) return wrong("the size of y");
  }
  auto compute = number_of(window->value<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE));
  bool wide = c.x.type == Number::kF64;
  if (c.x.type != c.weight.type || compute != (wide ? Number::kF64 : Number::kF32)) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "data and compute types");
  }
  if ((operation.find(names.alpha)->type == CUDNN_TYPE_DOUBLE) != wide) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "factors are double for double data, else float");
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_pointwise(const Object& operation) {
  const Object* mode = operation.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  if (mode == nullptr || mode->type != CUDNN_BACKEND_POINTWISE_DESCRIPTOR) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "no mode");
  }
  for (int name : {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC}) {
    if (!is_tensor(operation.part(name))) return refuse(CUDNN_STATUS_BAD_PARAM, "not a tensor");
  }
  TensorView x(*operation.part(CUDNN_ATTR_OPERATION_POINTWISE_XDESC)),
      y(*operation.part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
  bool fits = x.shape == y.shape;
  for (int name : {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_TDESC}) {
    if (!is_tensor(operation.part(name))) continue;
    TensorView b(*operation.part(name));
    fits = fits && b.shape.size() == y.shape.size();
    for (size_t i = 0; fits && i < y.shape.size(); i++) fits = b.shape[i] == 1 || b.shape[i] == y.shape[i];
  }
  return fits ? CUDNN_STATUS_SUCCESS : refuse(CUDNN_STATUS_BAD_PARAM, "operands do not fit together");
}

}  // namespace standin::dnn
