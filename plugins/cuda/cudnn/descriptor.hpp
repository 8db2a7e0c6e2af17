// SPDX-License-Identifier: Apache-2.0
// Descriptors of cuDNN's backend (graph) API: an object per descriptor, whose attributes are set by name and type until
// it is finalized. They destroy themselves, unless the process ends.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "vendor.hpp"

namespace cuda::dnn {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(cudnnBackendDescriptorType_t type) { PG_CUDNN(cudnnBackendCreateDescriptor(type, &raw_)); }
  Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Descriptor() {
    if (raw_ != nullptr && !is_exiting()) PG_CUDNN_WARN(cudnnBackendDestroyDescriptor(raw_));
  }
  cudnnBackendDescriptor_t get() const { return raw_; }

  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                  const void* values) {
    PG_CUDNN(cudnnBackendSetAttribute(raw_, name, type, count, values));
    return *this;
  }
  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    return set(name, type, 1, &value);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
    return set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
  }
  Descriptor& set(cudnnBackendAttributeName_t name, int64_t value) { return set(name, CUDNN_TYPE_INT64, value); }
  Descriptor& set(cudnnBackendAttributeName_t name, bool value) { return set(name, CUDNN_TYPE_BOOLEAN, value); }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.raw_);
  }
  Descriptor& finalize() {
    PG_CUDNN(cudnnBackendFinalize(raw_));
    return *this;
  }
  // False where cuDNN does not take what was described. Warns when it called that a mistake rather than unsupported;
  // throws what has nothing to do with the description.
  [[nodiscard]] bool try_finalize();

  int64_t get_int64(cudnnBackendAttributeName_t name) const {
    int64_t value = 0, count = 0;
    PG_CUDNN(cudnnBackendGetAttribute(raw_, name, CUDNN_TYPE_INT64, 1, &count, &value));
    return value;
  }
  // Attributes that are descriptors are written into ones that the caller has made.
  Descriptor get_descriptor(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const {
    Descriptor value(type);
    int64_t count = 0;
    PG_CUDNN(cudnnBackendGetAttribute(raw_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &value.raw_));
    return value;
  }
  std::vector<Descriptor> get_descriptors(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const;

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

// A tensor of a graph. Its uid stands for its address in an execution.
struct Tensor {
  int64_t uid = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int64_t> shape, stride;
  int64_t alignment = 16;
  bool is_virtual = false;  // passed on within the graph only
  bool by_value = false;    // its address in an execution is the host's, and read before that returns

  Descriptor describe() const;
};

std::optional<cudnnDataType_t> data_type(uint32_t dtype);  // none: cuDNN has no such floats
inline cudnnDataType_t compute_type(uint32_t dtype) { return dtype == PG_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT; }

}  // namespace cuda::dnn
