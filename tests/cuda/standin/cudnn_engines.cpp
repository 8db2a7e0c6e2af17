// SPDX-License-Identifier: Apache-2.0
// The engines that this cuDNN has, and what each of them takes. They are chosen so that the plugin's every way is
// walked: engines that it must leave out, engines that the heuristics offer and that then refuse, and graphs that none
// takes.
#include <atomic>

#include "cudnn_store.hpp"

namespace standin {
namespace {

std::atomic<bool> refuses{false};

}  // namespace

void refuse_graphs(bool refuse) { refuses = refuse; }

namespace dnn {
namespace {

enum Engine { kTensorCores = kTensorCoreEngine, kAtomic, kPlain, kLast, kFused, kAtomicNorm, kNorm, kPool, kAttention };

const Object& first_operation(const Object& graph) { return *graph.parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS)[0]; }

struct Graph {
  std::vector<Ref> operations;
  ConvolutionView conv;
  bool fused;

  explicit Graph(const Object& graph)
      : operations(graph.parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS)),
        conv(*operations[0]),
        fused(operations.size() == 2 && is_pointwise(*operations[1])) {}

  bool half() const { return conv.x.type == Number::kF16 || conv.x.type == Number::kBf16; }
  bool aligned() const { return conv.x.alignment >= 16 && conv.weight.alignment >= 16 && conv.y.alignment >= 16; }
  // All tensors one way: cuDNN's engines do not mix.
  bool one_layout() const {
    bool dense = conv.x.is_dense() && conv.weight.is_dense() && conv.y.is_dense();
    return dense || (conv.x.is_channels_last() && conv.weight.is_channels_last() && conv.y.is_channels_last());
  }
  bool takes(int engine) const {
    switch (engine) {
      case kTensorCores: return aligned() && one_layout() && conv.x.shape[1] % 2 == 0 && conv.x.type != Number::kF64;
      case kAtomic: return true;
      case kPlain: return one_layout() && (aligned() || !half()) && conv.x.type != Number::kF64;
      case kLast: return conv.x.type == Number::kF64 && (conv.groups() == 1 || conv.dilation[0] == 1);
      case kFused: return fused && half() && aligned() && one_layout();
      default: return false;
    }
  }
};

std::shared_ptr<Object> config(const Ref& graph, int engine, std::vector<cudnnBackendNumericalNote_t> notes) {
  auto object = std::make_shared<Object>();
  object->type = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
  object->final = true;
  object->engine = engine, object->notes = std::move(notes);
  object->parts[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] = {graph};
  return object;
}

// As cuDNN 9.19 has them for sm_90: in training, not for float64, each with the memory of a conversion to
// channels-last. There the channels of a place must fill whole 16 bytes; here fewer are refused, for the tests' sake.
std::vector<std::shared_ptr<Object>> find_norms(const Ref& graph, cudnnBackendHeurMode_t mode) {
  NormView norm(first_operation(*graph));
  if (!norm.training || norm.x.type == Number::kF64 || norm.x.shape[1] == 1) return {};
  if (mode != CUDNN_HEUR_MODE_A) return {};
  return {config(graph, kAtomicNorm, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}), config(graph, kNorm, {})};
}

cudnnStatus_t check_norm_plan(Object& plan, int engine, const Object& graph) {
  NormView norm(first_operation(graph));
  if (engine != kNorm || !norm.one_layout || !norm.aligned) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the engine does not take the graph");
  }
  plan.workspace = 2 * norm.x.extent() * number_bytes(norm.x.type) + 100;
  return CUDNN_STATUS_SUCCESS;
}

// As cuDNN 9.19 has it for sm_90: one engine for dense tensors, in the fallback list, without a workspace. (That for
// channels-last is not asked for.)
std::vector<std::shared_ptr<Object>> find_pools(const Ref& graph, cudnnBackendHeurMode_t mode) {
  ResampleView pool(first_operation(*graph));
  if (mode != CUDNN_HEUR_MODE_FALLBACK || !pool.full.is_dense() || !pool.pooled.is_dense()) return {};
  return {config(graph, kPool, {})};
}

}  // namespace

std::vector<std::shared_ptr<Object>> find_engines(const Ref& graph, cudnnBackendHeurMode_t mode) {
  if (refuses) return {};
  if (is_norm(first_operation(*graph))) return find_norms(graph, mode);
  if (is_resample(first_operation(*graph))) return find_pools(graph, mode);
  if (is_matmul(first_operation(*graph))) {
    if (mode != CUDNN_HEUR_MODE_A || !is_attention(*graph)) return {};
    return {config(graph, kAttention, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE})};
  }
  if (!is_convolution(first_operation(*graph))) return {};
  Graph g(*graph);
  if (g.operations.size() > 1) {
    if (!g.fused || mode != CUDNN_HEUR_MODE_A) return {};
    return {config(graph, kFused, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE})};
  }
  if (mode == CUDNN_HEUR_MODE_FALLBACK) return {config(graph, kLast, {})};
  if (mode != CUDNN_HEUR_MODE_A) return {};
  return {config(graph, kTensorCores, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}),
          config(graph, kAtomic, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}), config(graph, kPlain, {})};
}

cudnnStatus_t check_plan(Object& plan) {
  const Object* chosen = plan.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  if (chosen == nullptr || chosen->engine < 0) return refuse(CUDNN_STATUS_BAD_PARAM, "not an engine configuration");
  const Object& graph = *chosen->part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  if (is_norm(first_operation(graph))) {
    if (auto status = check_norm_plan(plan, chosen->engine, graph); status != CUDNN_STATUS_SUCCESS) return status;
  } else if (is_matmul(first_operation(graph))) {
    plan.workspace = 16;
  } else if (!is_resample(first_operation(graph))) {
    Graph g(graph);
    if (!g.takes(chosen->engine)) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the engine does not take the graph");
    plan.workspace = (chosen->engine == kTensorCores ? 64 : 16) * g.conv.weight.extent();
  }
  plan.engine = chosen->engine;
  plan.parts[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] = chosen->parts.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace dnn
}  // namespace standin
