// SPDX-License-Identifier: Apache-2.0
#include "cudnn/plan.hpp"

#include <algorithm>
#include <cinttypes>

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
bool keeps_promises(const std::vector<cudnnBackendNumericalNote_t>& notes, const Wanted& wanted) {
  for (cudnnBackendNumericalNote_t note : notes) {
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

std::vector<Descriptor> engine_configs(const Target& target, const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (target.description != nullptr) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.description);
  if (!heuristics.try_finalize()) return {};
  return heuristics.get_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

Descriptor make_graph(const Target& target, std::span<const Descriptor* const> operations) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor* operation : operations) raw.push_back(operation->get());
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target.handle != nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()), raw.data());
  return graph;
}

Descriptor make_plan(const Target& target, const Descriptor& config) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (target.handle != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  if (target.description != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.description);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  return plan;
}

// Too little memory may be why a program is slow.
void log_passed_over(uint64_t least, const Wanted& wanted) {
  if (least == 0) return;
  pg::log(PG_LOG_INFO, pg::format("cuda: engines that cuDNN ranks higher for %s want %" PRIu64
                                  " bytes of workspace; %" PRIu64 " is the most that is given here",
                                  wanted.what.c_str(), least, wanted.workspace));
}

}  // namespace

uint64_t workspace_limit_of(uint32_t device) {
  use_device(device);
  size_t left = 0, total = 0;
  PG_CUDA(cudaMemGetInfo(&left, &total));
  return workspace_limit(pg::deterministic() ? total / 8 : left);
}

std::optional<Plan> find_plan(const Target& target, std::span<const Descriptor* const> operations, const Wanted& wanted,
                              std::shared_ptr<const void> parts) {
  auto graph = std::make_shared<Descriptor>(make_graph(target, operations));
  if (!graph->try_finalize()) return std::nullopt;
  uint64_t passed_over = 0;  // the least that an engine wanted which there is too little memory for
  for (cudnnBackendHeurMode_t mode : kModes) {
    for (Descriptor& config : engine_configs(target, *graph, mode)) {
      std::vector<cudnnBackendNumericalNote_t> notes = notes_of(config);
      if (!keeps_promises(notes, wanted)) continue;
      Plan plan;
      plan.descriptor_ = make_plan(target, config);
      if (!plan.descriptor_.try_finalize()) continue;
      plan.workspace_ = static_cast<uint64_t>(plan.descriptor_.get_int64(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
      if (plan.workspace_ > wanted.workspace) {
        passed_over = passed_over == 0 ? plan.workspace_ : std::min(passed_over, plan.workspace_);
        continue;
      }
      plan.parts_ = std::move(parts), plan.graph_ = graph, plan.config_ = std::move(config);
      plan.on_tensor_cores_ = std::find(notes.begin(), notes.end(), CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != notes.end();
      log_passed_over(passed_over, wanted);
      take_cudnn_reason();  // of engines that were passed over
      return plan;
    }
  }
  log_passed_over(passed_over, wanted);
  return std::nullopt;
}

std::optional<Plan> find_plan(uint32_t device, std::span<const Descriptor* const> operations, const Wanted& wanted,
                              std::shared_ptr<const void> parts) {
  use_device(device);
  DnnHandle handle(device);
  return find_plan(Target{handle.get(), nullptr}, operations, wanted, std::move(parts));
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
