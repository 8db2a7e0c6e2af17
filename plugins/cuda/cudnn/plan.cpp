// SPDX-License-Identifier: Apache-2.0
#include "cudnn/plan.hpp"

#include <algorithm>
#include <array>

namespace cuda::dnn {
namespace {

// Heuristics by a model of speed, then those that find something for as many graphs as possible.
constexpr cudnnBackendHeurMode_t kModes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};

std::vector<cudnnBackendNumericalNote_t> notes_of(const Descriptor& config) {
  Descriptor engine = config.get_descriptor(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  int64_t count = 0;
  PG_CUDNN(cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                    CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes.data()));
  notes.resize(static_cast<size_t>(std::min<int64_t>(count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT)));
  return notes;
}

// Same input, same bits; and float32 is float32.
bool keeps_promises(const Descriptor& config, const Wanted& wanted) {
  for (cudnnBackendNumericalNote_t note : notes_of(config)) {
    if (note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) return false;
    if (note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) return false;
    if (!wanted.exact) continue;
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:  // TF32
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      case CUDNN_NUMERICAL_NOTE_FFT:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13: return false;
      default: break;
    }
  }
  return true;
}

std::vector<Descriptor> engine_configs(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (!heuristics.try_finalize()) return {};
  return heuristics.get_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

}  // namespace

std::optional<Plan> find_plan(uint32_t device, std::span<const Descriptor* const> operations, const Wanted& wanted,
                              std::shared_ptr<const void> parts) {
  use_device(device);
  DnnHandle handle(device);
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor* operation : operations) raw.push_back(operation->get());
  auto graph = std::make_shared<Descriptor>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle.get());
  graph->set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()),
             raw.data());
  if (!graph->try_finalize()) return std::nullopt;
  for (cudnnBackendHeurMode_t mode : kModes) {
    for (Descriptor& config : engine_configs(*graph, mode)) {
      if (!keeps_promises(config, wanted)) continue;
      Plan plan;
      plan.descriptor_ = Descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.descriptor_.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle.get());
      plan.descriptor_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
      if (!plan.descriptor_.try_finalize()) continue;
      plan.workspace_ = static_cast<uint64_t>(plan.descriptor_.get_int64(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
      if (plan.workspace_ > wanted.workspace) continue;
      plan.parts_ = std::move(parts), plan.graph_ = graph, plan.config_ = std::move(config);
      take_cudnn_reason();  // of engines that were passed over
      return plan;
    }
  }
  return std::nullopt;
}

void log_no_engine(const std::string& what) {
  std::string reason = take_cudnn_reason();
  if (!reason.empty()) reason = " (" + reason + ")";
  pg::log(PG_LOG_DEBUG, "cuDNN has no engine for " + what + reason + ": own kernels compute it");
}

void Plan::run(uint32_t device, cudaStream_t stream, std::span<const int64_t> uids, std::span<void* const> addresses,
               void* workspace) const {
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<int64_t>(addresses.size()),
           addresses.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  pack.finalize();
  DnnHandle handle(device, stream);
  PG_CUDNN(cudnnBackendExecute(handle.get(), descriptor_.get(), pack.get()));
}

}  // namespace cuda::dnn
