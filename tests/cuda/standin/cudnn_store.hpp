// SPDX-License-Identifier: Apache-2.0
// What lies behind cuDNN's backend descriptors here: attributes by name, kept as they were set, and what finalizing
// them made of them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "numbers.hpp"

namespace standin::dnn {

struct Attribute {
  cudnnBackendAttributeType_t type;
  int64_t count = 0;
  std::vector<char> bytes;

  template <class T>
  const T* values() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
};

constexpr int kTensorCoreEngine = 0;

struct Object;
using Ref = std::shared_ptr<const Object>;

// The operations of a graph share their parts with it: descriptors may be destroyed as soon as what they were given to
// is finalized.
struct Object {
  cudnnBackendDescriptorType_t type{};
  bool final = false;
  std::map<int, Attribute> attributes;
  std::map<int, std::vector<Ref>> parts;  // attributes that are descriptors

  // Of engines and what is made with them.
  int engine = -1;
  std::vector<cudnnBackendNumericalNote_t> notes;
  int64_t workspace = 0;
  std::vector<std::shared_ptr<Object>> results;  // of heuristics

  const Attribute* find(int name) const;
  int64_t number(int name, int64_t otherwise = 0) const;
  std::vector<int64_t> numbers(int name) const;
  template <class T>
  T value(int name) const {
    return *find(name)->values<T>();
  }
  const Object* part(int name) const;
};

// The last error's text, of the calling thread; returns the status.
cudnnStatus_t refuse(cudnnStatus_t status, const std::string& why);

size_t bytes_of(cudnnBackendAttributeType_t type);  // of one element; 0: not known here

// The types and counts of attributes, by descriptor. NULL: the descriptor has no such attribute.
struct Rule {
  int name;
  cudnnBackendAttributeType_t type;
  int64_t least, most;  // elements
  bool required;
};
const Rule* rule_of(const Object& object, int name);
cudnnStatus_t check_finalized(const Object& object);

// ---- tensors ----

Number number_of(cudnnDataType_t type);
struct TensorView {
  int64_t uid = 0, alignment = 1;
  Number type = Number::kNone;
  std::vector<int64_t> shape, stride;
  bool is_virtual = false, by_value = false;

  explicit TensorView(const Object& tensor);
  int64_t count() const;
  int64_t extent() const;  // elements from the first to behind the last
  bool is_dense() const;
  bool is_channels_last() const;
};

bool is_tensor(const Object* part);

// ---- convolutions ----

struct ConvolutionView {
  cudnnBackendDescriptorType_t kind;
  TensorView x, weight, y;
  std::vector<int64_t> stride, padding, dilation;
  double alpha, beta;

  explicit ConvolutionView(const Object& operation);
  int64_t groups() const { return weight.shape[1] == 0 ? 0 : x.shape[1] / weight.shape[1]; }
  const TensorView& result() const;
};
bool is_convolution(const Object& operation);
bool is_pointwise(const Object& operation);
cudnnStatus_t check_convolution(const Object& operation);
cudnnStatus_t check_pointwise(const Object& operation);

// ---- normalisations ----

struct NormView {
  TensorView x;
  bool one_layout, aligned, training;

  explicit NormView(const Object& operation);
};
bool is_norm(const Object& operation);
cudnnStatus_t check_norm(const Object& operation);
void compute_norm(const Object& operation, const std::map<int64_t, void*>& addresses);

// ---- pooling ----

struct ResampleView {
  bool nan_wins;
  TensorView full, pooled;
  cudnnResampleMode_t mode;
  cudnnPaddingMode_t padding;
  Number compute;
  std::vector<int64_t> window, stride, before, behind;

  explicit ResampleView(const Object& operation);
};
bool is_resample(const Object& operation);
cudnnStatus_t check_windows(const Object& windows);
cudnnStatus_t check_resample(const Object& operation);
void compute_resample(const Object& operation, const std::map<int64_t, void*>& addresses);

// ---- engines ----

std::vector<std::shared_ptr<Object>> find_engines(const Ref& graph, cudnnBackendHeurMode_t mode);
cudnnStatus_t check_plan(Object& plan);  // refuses, or sets the workspace
// Runs on the stream's thread.
cudnnStatus_t execute(const Ref& plan, const Object& pack, cudaStream_t stream);
void compute(const Object& plan, const std::map<int64_t, void*>& addresses);

// ---- attention ----

bool is_matmul(const Object& operation);
bool is_reduction(const Object& operation);
bool is_attention(const Object& graph);
void compute_attention(const Object& graph, const std::map<int64_t, void*>& addresses);

}  // namespace standin::dnn
