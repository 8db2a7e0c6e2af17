// SPDX-License-Identifier: Apache-2.0
#include "cudnn/descriptor.hpp"

#include <algorithm>

namespace cuda::dnn {

bool Descriptor::try_finalize() {
  cudnnStatus_t status = PG_CUDNN_STATUS(cudnnBackendFinalize(raw_));
  if (status == CUDNN_STATUS_SUCCESS) return true;
  int category = CUDNN_STATUS_CATEGORY(status);
  if (category == CUDNN_STATUS_NOT_SUPPORTED) return false;
  bool memory = status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  bool description = category == CUDNN_STATUS_BAD_PARAM || category == CUDNN_STATUS_INTERNAL_ERROR;
  if (memory || !description) fail_cudnn(status, "cudnnBackendFinalize");
  warn_cudnn(status, "cudnnBackendFinalize");
  return false;
}

std::vector<Descriptor> Descriptor::get_descriptors(cudnnBackendAttributeName_t name,
                                                    cudnnBackendDescriptorType_t type) const {
  int64_t count = 0, written = 0;
  PG_CUDNN(cudnnBackendGetAttribute(raw_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr));
  std::vector<Descriptor> values;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < count; i++) {
    values.emplace_back(type);
    raw.push_back(values.back().get());
  }
  if (count == 0) return values;
  PG_CUDNN(cudnnBackendGetAttribute(raw_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &written, raw.data()));
  values.resize(static_cast<size_t>(std::min(count, written)));
  return values;
}

std::optional<cudnnDataType_t> data_type(uint32_t dtype) {
  switch (dtype) {
    case PG_F32: return CUDNN_DATA_FLOAT;
    case PG_F64: return CUDNN_DATA_DOUBLE;
    case PG_F16: return CUDNN_DATA_HALF;
    case PG_BF16: return CUDNN_DATA_BFLOAT16;
    default: return std::nullopt;
  }
}

Descriptor Tensor::describe() const {
  Descriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid).set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span(shape)).set(CUDNN_ATTR_TENSOR_STRIDES, std::span(stride));
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment).set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual);
  if (by_value) d.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  return std::move(d.finalize());
}

}  // namespace cuda::dnn
