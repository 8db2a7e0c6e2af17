// SPDX-License-Identifier: Apache-2.0
// Which engines the real cuDNN has for our graphs on a GPU that is described to it. Engines that compile when their
// plan is made need the driver's library; the toolkit's stub of it, if there, makes them known, though their plans then
// fail.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <utility>

#include "cudnn/attention_graph.hpp"
#include "cudnn/conv_graph.hpp"
#include "cudnn/norm_graph.hpp"
#include "cudnn/pool_graph.hpp"
#include "described_gpu.hpp"

#if CUDNN_VERSION >= 90800

using namespace cuda::dnn;

namespace {

struct Found {
  int64_t offered = 0;  // by the heuristics
  int64_t planned = 0;  // of the first of each list: a plan could be made without a driver
};

template <class Graph>
Found engines(const Graph& operation) {
  Found found;
  Descriptor device = vendor_test::described_gpu(), graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor* each : operation.operations()) raw.push_back(each->get());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()), raw.data());
  graph.finalize();
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph).set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    if (!heuristics.try_finalize()) continue;
    auto configs = heuristics.get_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    found.offered += static_cast<int64_t>(configs.size());
    if (configs.empty()) continue;
    Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configs[0]).set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
    found.planned += cudnnBackendFinalize(plan.get()) == CUDNN_STATUS_SUCCESS ? 1 : 0;
  }
  return found;
}

NormShape norm(NormKind kind, uint32_t dtype, int64_t channels) {
  NormShape s;
  s.kind = kind, s.dtype = dtype, s.x = {4, channels, 14, 14}, s.running = kind == NormKind::kForward;
  return s;
}

}  // namespace

TEST_CASE("cuDNN has engines for dense convolutions") {
  for (uint32_t dtype : {PG_F32, PG_F16, PG_BF16}) {
    ConvShape s;
    s.dtype = dtype, s.x = {2, 8, 7, 6}, s.weight = {16, 8, 3, 3}, s.y = {2, 16, 5, 4};
    s.x_stride = dense_strides(s.x), s.weight_stride = dense_strides(s.weight), s.y_stride = dense_strides(s.y);
    CHECK(engines(ConvGraph(s, choose_layouts(s, true), false, 16)).planned > 0);
  }
}

TEST_CASE("cuDNN has engines for dense convolutions of volumes and their gradients") {
  for (uint32_t dtype : {PG_F32, PG_F16, PG_BF16}) {
    for (ConvKind kind : {ConvKind::kForward, ConvKind::kInputGradient, ConvKind::kWeightGradient}) {
      ConvShape s;
      s.kind = kind, s.dtype = dtype, s.x = {2, 8, 5, 7, 6}, s.weight = {16, 8, 3, 3, 3}, s.y = {2, 16, 3, 5, 4};
      s.x_stride = dense_strides(s.x), s.weight_stride = dense_strides(s.weight), s.y_stride = dense_strides(s.y);
      CAPTURE(pg::dtype_name(dtype), static_cast<int>(kind));
      CHECK(engines(ConvGraph(s, choose_layouts(s, true), false, 16)).planned > 0);
    }
  }
}

TEST_CASE("cuDNN has an engine for all pooling of dense tensors") {
  for (uint32_t dtype : {PG_F32, PG_F64, PG_F16, PG_BF16}) {
    for (PoolKind kind : {PoolKind::kMax, PoolKind::kAveragePadded, PoolKind::kAverage}) {
      PoolingShape s;
      s.kind = kind, s.dtype = dtype, s.full = {2, 3, 7, 6}, s.pooled = {2, 3, 4, 6};
      s.kernel[0] = s.kernel[1] = 3, s.stride[0] = 2, s.padding[0] = s.padding[1] = 1;
      CHECK(engines(PoolGraph(s)).planned == 1);
    }
  }
}

TEST_CASE("cuDNN has engines for batch norms in training, where the channels of a place fill whole 16 bytes") {
  if (dlopen(CUDA_DRIVER_STUB, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    WARN("without the toolkit's stub of the driver's library cuDNN says nothing of engines that compile");
    return;
  }
  for (uint32_t dtype : {PG_F32, PG_F16, PG_BF16}) {
    for (NormKind kind : {NormKind::kForward, NormKind::kGradient}) {
      int64_t whole = 16 / pg::dtype_bytes(dtype);
      CHECK(engines(NormGraph(norm(kind, dtype, 3 * whole))).offered > 0);
      CHECK(engines(NormGraph(norm(kind, dtype, 3 * whole + whole / 2))).offered == 0);
    }
  }
}

TEST_CASE("cuDNN has engines for attention of 16-bit floats") {
  if (dlopen(CUDA_DRIVER_STUB, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    WARN("without the toolkit's stub of the driver's library cuDNN says nothing of engines that compile");
    return;
  }
  for (uint32_t dtype : {PG_F16, PG_BF16}) {
    for (bool causal : {false, true}) {
      for (auto [positions, width] : {std::pair<int64_t, int64_t>{1024, 8}, {77, 64}, {1, 128}}) {
        AttentionShape s;
        s.dtype = dtype, s.causal = causal;
        s.q = {2, 12, positions, width}, s.k = {2, 12, 255, width}, s.v = {2, 12, 255, 128};
        s.q_stride = {positions * 36 * width, width, 36 * width, 1};  // a part of a projection
        s.k_stride = dense_strides(s.k), s.v_stride = dense_strides(s.v);
        CAPTURE(pg::dtype_name(dtype), causal, positions, width);
        REQUIRE(s.is_cudnns());
        CHECK(engines(AttentionGraph(s)).offered > 0);
      }
    }
  }
}

#endif
