// SPDX-License-Identifier: Apache-2.0
// A stand-in for cuDNN: the entry points that the plugin uses, over the real header. Attributes of a wrong type or
// count, changes after finalizing and reads before it are refused, as there.
#include <algorithm>
#include <mutex>
#include <set>

#include "cudnn_store.hpp"
#include "standin.hpp"

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace standin::dnn {
namespace {

thread_local std::string last_error;

struct Descriptors {
  std::mutex mutex;
  std::map<const void*, std::shared_ptr<Object>> objects;
  std::set<const void*> handles;
};
Descriptors& descriptors() {
  static auto* instance = new Descriptors();
  return *instance;
}
// A descriptor's handle is the address of its object.
std::shared_ptr<Object> object_of(const void* descriptor) {
  std::lock_guard lock(descriptors().mutex);
  auto found = descriptors().objects.find(descriptor);
  return found == descriptors().objects.end() ? nullptr : found->second;
}
bool is_handle(const void* handle) {
  std::lock_guard lock(descriptors().mutex);
  return descriptors().handles.count(handle) != 0;
}

cudnnStatus_t set_attribute(Object& object, int name, cudnnBackendAttributeType_t type, int64_t count,
                            const void* values) {
  const Rule* rule = rule_of(object, name);
  if (rule == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "the descriptor has no attribute " + std::to_string(name));
  bool real = type == CUDNN_TYPE_DOUBLE && rule->type == CUDNN_TYPE_FLOAT;  // factors may be either
  if (type != rule->type && !real) {
    return refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "wrong type for attribute " + std::to_string(name));
  }
  if (count < rule->least || count > rule->most) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "wrong count for attribute " + std::to_string(name));
  }
  if (values == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no values");
  auto* bytes = static_cast<const char*>(values);
  object.attributes[name] = {type, count, {bytes, bytes + static_cast<size_t>(count) * bytes_of(type)}};
  if (type == CUDNN_TYPE_HANDLE && !is_handle(object.value<const void*>(name))) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "not a handle");
  }
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) return CUDNN_STATUS_SUCCESS;
  std::vector<Ref>& parts = object.parts[name];
  parts.clear();
  for (int64_t i = 0; i < count; i++) {
    std::shared_ptr<Object> part = object_of(object.attributes[name].values<const void*>()[i]);
    if (part == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "not a descriptor");
    if (!part->final) return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a part is not finalized");
    parts.push_back(part);
  }
  return CUDNN_STATUS_SUCCESS;
}

// Descriptors are written into ones that the caller has made, of the right type.
cudnnStatus_t get_descriptors(const std::vector<std::shared_ptr<Object>>& from, cudnnBackendDescriptorType_t type,
                              int64_t requested, int64_t* count, void* values) {
  *count = static_cast<int64_t>(from.size());
  for (int64_t i = 0; i < std::min(requested, *count); i++) {
    std::shared_ptr<Object> target = object_of(static_cast<void* const*>(values)[i]);
    if (target == nullptr || target->type != type) return refuse(CUDNN_STATUS_BAD_PARAM, "no descriptor to write to");
    *target = *from[static_cast<size_t>(i)];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t get_attribute(const std::shared_ptr<Object>& object, int name, cudnnBackendAttributeType_t type,
                            int64_t requested, int64_t* count, void* values) {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) break;
      return get_descriptors(object->results, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, requested, count, values);
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) break;
      auto engine = std::make_shared<Object>(*object);
      engine->type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
      return get_descriptors({engine}, CUDNN_BACKEND_ENGINE_DESCRIPTOR, requested, count, values);
    }
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      if (type != CUDNN_TYPE_NUMERICAL_NOTE || object->type != CUDNN_BACKEND_ENGINE_DESCRIPTOR) break;
      *count = static_cast<int64_t>(object->notes.size());
      std::copy_n(object->notes.begin(), std::min(requested, *count),
                  static_cast<cudnnBackendNumericalNote_t*>(values));
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      if (type != CUDNN_TYPE_INT64 || object->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR || requested < 1) break;
      *count = 1;
      *static_cast<int64_t*>(values) = object->workspace;
      return CUDNN_STATUS_SUCCESS;
    default: return refuse(CUDNN_STATUS_NOT_SUPPORTED, "attribute " + std::to_string(name) + " cannot be read");
  }
  return refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "wrong type for attribute " + std::to_string(name));
}

}  // namespace

cudnnStatus_t refuse(cudnnStatus_t status, const std::string& why) {
  last_error = why;
  return status;
}

}  // namespace standin::dnn

using namespace standin;
using namespace standin::dnn;

extern "C" {

size_t cudnnGetVersion(void) { return CUDNN_VERSION; }
size_t cudnnGetCudartVersion(void) { return CUDART_VERSION; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS: return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED: return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE: return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
    case CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED: return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER: return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
    case CUDNN_STATUS_NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_EXECUTION_FAILED: return "CUDNN_STATUS_EXECUTION_FAILED";
    default: return "CUDNN_STATUS_OTHER";
  }
}
void cudnnGetLastErrorString(char* message, size_t bytes) {
  if (bytes == 0) return;
  size_t length = std::min(bytes - 1, last_error.size());
  std::memcpy(message, last_error.data(), length);
  message[length] = '\0';
  last_error.clear();
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (enter("cudnnCreate") != cudaSuccess) return CUDNN_STATUS_NOT_INITIALIZED;
  load_vendor();
  *handle = new cudnnContext();
  std::lock_guard lock(descriptors().mutex);
  descriptors().handles.insert(*handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  refuse_after_exit(__func__);
  {
    std::lock_guard lock(descriptors().mutex);
    if (descriptors().handles.erase(handle) == 0) return CUDNN_STATUS_BAD_PARAM;
  }
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (!is_handle(handle)) return CUDNN_STATUS_BAD_PARAM;
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  auto object = std::make_shared<Object>();
  object->type = type;
  *descriptor = object.get();
  std::lock_guard lock(descriptors().mutex);
  descriptors().objects[object.get()] = object;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  refuse_after_exit(__func__);
  std::lock_guard lock(descriptors().mutex);
  return descriptors().objects.erase(descriptor) == 1 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  std::shared_ptr<Object> object = object_of(descriptor);
  if (object == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "not a descriptor");
  if (object->final) return refuse(CUDNN_STATUS_BAD_PARAM, "the descriptor is finalized");
  return set_attribute(*object, name, type, count, values);
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t requested, int64_t* count,
                                       void* values) {
  std::shared_ptr<Object> object = object_of(descriptor);
  if (object == nullptr || count == nullptr || (requested > 0 && values == nullptr)) return CUDNN_STATUS_BAD_PARAM;
  if (!object->final) return refuse(CUDNN_STATUS_NOT_INITIALIZED, "the descriptor is not finalized");
  return get_attribute(object, name, type, requested, count, values);
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  if (enter("cudnnBackendFinalize") != cudaSuccess) return CUDNN_STATUS_INTERNAL_ERROR;
  std::shared_ptr<Object> object = object_of(descriptor);
  if (object == nullptr || object->final) return refuse(CUDNN_STATUS_BAD_PARAM, "not a descriptor to finalize");
  if (cudnnStatus_t status = check_finalized(*object); status != CUDNN_STATUS_SUCCESS) return status;
  if (object->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) {
    object->results = find_engines(object->parts[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH][0],
                                   object->value<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE));
    if (object->results.empty()) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "no engine for the graph");
  }
  if (object->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    if (cudnnStatus_t status = check_plan(*object); status != CUDNN_STATUS_SUCCESS) return status;
  }
  object->final = true;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  if (enter("cudnnBackendExecute") != cudaSuccess) return CUDNN_STATUS_EXECUTION_FAILED;
  std::shared_ptr<Object> steps = object_of(plan), arguments = object_of(pack);
  if (!is_handle(handle) || steps == nullptr || arguments == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (!steps->final || !arguments->final) return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "not finalized");
  return execute(steps, *arguments, handle->stream);
}

}  // extern "C"
