// SPDX-License-Identifier: Apache-2.0
// Which attributes each descriptor has, and what finalizing it checks.
#include <algorithm>
#include <cmath>

#include "cudnn_store.hpp"

namespace standin::dnn {
namespace {

constexpr auto kInt = CUDNN_TYPE_INT64;
constexpr auto kPart = CUDNN_TYPE_BACKEND_DESCRIPTOR;

// clang-format off
const std::map<cudnnBackendDescriptorType_t, std::vector<Rule>>& rules() {
  static const std::map<cudnnBackendDescriptorType_t, std::vector<Rule>> table = {
      {CUDNN_BACKEND_TENSOR_DESCRIPTOR,
       {{CUDNN_ATTR_TENSOR_UNIQUE_ID, kInt, 1, 1, true},
        {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, true},
        {CUDNN_ATTR_TENSOR_DIMENSIONS, kInt, 1, CUDNN_DIM_MAX, true},
        {CUDNN_ATTR_TENSOR_STRIDES, kInt, 1, CUDNN_DIM_MAX, true},
        {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kInt, 1, 1, true},
        {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, 1, false},
        {CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, 1, false}}},
      {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
       {{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, true},
        {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, 1, true},
        {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, kInt, 1, 1, true},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, kInt, 1, CUDNN_DIM_MAX, true},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, kInt, 1, CUDNN_DIM_MAX, true},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, kInt, 1, CUDNN_DIM_MAX, true},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, kInt, 1, CUDNN_DIM_MAX, true}}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, 1, true},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, 1, true},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, kPart, 1, 1, true}}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, 1, 1, true},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, 1, 1, true},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, kPart, 1, 1, true}}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT, 1, 1, true},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT, 1, 1, true},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, kPart, 1, 1, true}}},
      {CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
       {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, 1, true},
        {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, 1, true},
        {CUDNN_ATTR_POINTWISE_AXIS, kInt, 1, 1, false}}},
      {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, kPart, 1, 1, false},
        {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, kPart, 1, 1, false},
        {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kPart, 1, 1, true}}},
      {CUDNN_BACKEND_MATMUL_DESCRIPTOR, {{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, true}}},
      {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_MATMUL_DESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_MATMUL_ADESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_MATMUL_BDESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_MATMUL_CDESC, kPart, 1, 1, true}}},
      {CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
       {{CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, 1, true},
        {CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, true}}},
      {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_REDUCTION_DESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, kPart, 1, 1, true}}},
      {CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, 1, 1, true},
        {CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1, 1, true},
        {CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC, kPart, 1, 1, false},
        {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, kPart, 1, 1, false},
        {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC, kPart, 1, 1, false},
        {CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, kPart, 1, 1, false},
        {CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC, kPart, 1, 1, false}}},
      {CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, 1, 1, true},
        {CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, kPart, 1, 1, true}}},
      {CUDNN_BACKEND_RESAMPLE_DESCRIPTOR,
       {{CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, 1, 1, true},
        {CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, true},
        {CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, 1, false},
        {CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, 1, 1, true},
        {CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, kInt, 1, 1, true},
        {CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, kInt, 1, CUDNN_DIM_MAX, true},
        {CUDNN_ATTR_RESAMPLE_STRIDES, kInt, 1, CUDNN_DIM_MAX, true},
        {CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, kInt, 1, CUDNN_DIM_MAX, true},
        {CUDNN_ATTR_RESAMPLE_POST_PADDINGS, kInt, 1, CUDNN_DIM_MAX, true}}},
      {CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, kPart, 1, 1, true},
        {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, kPart, 1, 1, true}}},
      {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, 1, true},
        {CUDNN_ATTR_OPERATIONGRAPH_OPS, kPart, 1, 64, true}}},
      {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
       {{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, kPart, 1, 1, true},
        {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1, true}}},
      {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
       {{CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, 1, true},
        {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kPart, 1, 1, true}}},
      {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
       {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, kInt, 1, 64, true},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 1, 64, true},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, 1, false}}},
  };
  return table;
}
// clang-format on

cudnnStatus_t bad(const std::string& why) { return refuse(CUDNN_STATUS_BAD_PARAM, why); }

cudnnStatus_t check_tensor(const Object& object) {
  TensorView t(object);
  if (t.shape.size() != t.stride.size()) return bad("as many strides as dimensions are needed");
  for (size_t i = 0; i < t.shape.size(); i++) {
    if (t.shape[i] < 1 || t.stride[i] < 1) return bad("dimensions and strides must be positive");
  }
  if (t.type == Number::kNone) return refuse(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "a data type this has not");
  if (t.alignment <= 0 || t.alignment % number_bytes(t.type) != 0) {
    return bad("the alignment is not a multiple of the data type's size");
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_window(const Object& object) {
  auto dims = static_cast<size_t>(object.number(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
  for (int name : {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
                   CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS}) {
    std::vector<int64_t> values = object.numbers(name);
    bool padding = name == CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS || name == CUDNN_ATTR_CONVOLUTION_POST_PADDINGS;
    if (values.size() != dims) return bad("one number per spatial dimension is needed");
    for (int64_t value : values) {
      if (value < (padding ? 0 : 1)) return bad("a window's number is too small");
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

// The same uid is the same tensor.
cudnnStatus_t check_graph(const Object& object) {
  std::map<int64_t, const Object*> seen;
  for (const Ref& operation : object.parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    bool known = is_convolution(*operation) || is_pointwise(*operation) || is_norm(*operation) ||
                 is_resample(*operation) || is_matmul(*operation) || is_reduction(*operation);
    if (!known) return bad("not an operation");
    for (const auto& [name, parts] : operation->parts) {
      for (const Ref& part : parts) {
        if (part->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) continue;
        const Object*& first = seen[part->number(CUDNN_ATTR_TENSOR_UNIQUE_ID)];
        if (first != nullptr && first->numbers(CUDNN_ATTR_TENSOR_STRIDES) != part->numbers(CUDNN_ATTR_TENSOR_STRIDES)) {
          return refuse(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, "two tensors have one uid");
        }
        first = part.get();
      }
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_pack(const Object& object) {
  bool paired = object.find(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)->count ==
                object.find(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->count;
  return paired ? CUDNN_STATUS_SUCCESS : bad("as many addresses as uids are needed");
}

}  // namespace

const Attribute* Object::find(int name) const {
  auto found = attributes.find(name);
  return found == attributes.end() ? nullptr : &found->second;
}
int64_t Object::number(int name, int64_t otherwise) const {
  const Attribute* a = find(name);
  return a == nullptr ? otherwise : *a->values<int64_t>();
}
std::vector<int64_t> Object::numbers(int name) const {
  const Attribute* a = find(name);
  return a == nullptr ? std::vector<int64_t>()
                      : std::vector<int64_t>(a->values<int64_t>(), a->values<int64_t>() + a->count);
}
const Object* Object::part(int name) const {
  auto found = parts.find(name);
  return found == parts.end() || found->second.empty() ? nullptr : found->second[0].get();
}

size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
    case CUDNN_TYPE_FLOAT: return sizeof(float);
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_POINTWISE_MODE:
    case CUDNN_TYPE_REDUCTION_OPERATOR_TYPE:
    case CUDNN_TYPE_NAN_PROPOGATION:
    case CUDNN_TYPE_RESAMPLE_MODE:
    case CUDNN_TYPE_PADDING_MODE:
    case CUDNN_TYPE_NORM_MODE:
    case CUDNN_TYPE_NORM_FWD_PHASE:
    case CUDNN_TYPE_HEUR_MODE: return sizeof(int);
    default: return 0;
  }
}

const Rule* rule_of(const Object& object, int name) {
  auto found = rules().find(object.type);
  if (found == rules().end()) return nullptr;
  auto rule = std::find_if(found->second.begin(), found->second.end(), [&](const Rule& r) { return r.name == name; });
  return rule == found->second.end() ? nullptr : &*rule;
}

cudnnStatus_t check_finalized(const Object& object) {
  auto found = rules().find(object.type);
  if (found == rules().end()) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "a descriptor this has not");
  for (const Rule& rule : found->second) {
    if (rule.required && object.find(rule.name) == nullptr) {
      return bad("attribute " + std::to_string(rule.name) + " is missing");
    }
  }
  switch (object.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR: return check_tensor(object);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR: return check_window(object);
    case CUDNN_BACKEND_RESAMPLE_DESCRIPTOR: return check_windows(object);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: return check_graph(object);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR: return check_pack(object);
    default:
      if (is_convolution(object)) return check_convolution(object);
      if (is_norm(object)) return check_norm(object);
      if (is_resample(object)) return check_resample(object);
      return is_pointwise(object) ? check_pointwise(object) : CUDNN_STATUS_SUCCESS;
  }
}

}  // namespace standin::dnn
