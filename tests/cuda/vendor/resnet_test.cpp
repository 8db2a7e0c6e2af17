// SPDX-License-Identifier: Apache-2.0
// Which plans the real cuDNN gives for the convolutions of ResNet-50 in bfloat16 at a batch of 256 (He et al. 2016,
// with the stride in the middle of a block): found as the plugin finds them, its limit and its filter included.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "cudnn/conv_plan.hpp"
#include "described_gpu.hpp"

#if CUDNN_VERSION >= 90800

using namespace cuda::dnn;

namespace {

struct Layer {
  int64_t in, out, size, kernel, stride;  // square
};

constexpr int64_t kLayers = 53;

std::vector<Layer> resnet50() {
  std::vector<Layer> layers = {{3, 64, 224, 7, 2}};
  const int64_t blocks[] = {3, 4, 6, 3};
  int64_t in = 64, size = 56;
  for (int64_t stage = 0; stage < 4; stage++) {
    int64_t width = int64_t{64} << stage;
    for (int64_t block = 0; block < blocks[stage]; block++) {
      int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      layers.push_back({in, width, size, 1, 1});
      layers.push_back({width, width, size, 3, stride});
      layers.push_back({width, 4 * width, size / stride, 1, 1});
      if (block == 0) layers.push_back({in, 4 * width, size, 1, stride});
      in = 4 * width, size /= stride;
    }
  }
  return layers;
}

ConvShape shape_of(const Layer& layer, uint32_t dtype, ConvKind kind, bool channels_last) {
  constexpr int64_t kBatch = 256;
  ConvShape s;
  s.kind = kind, s.dtype = dtype;
  for (int i = 0; i < 2; i++) s.stride[i] = layer.stride, s.padding[i] = s.behind[i] = layer.kernel / 2;
  int64_t out = (layer.size + 2 * s.padding[0] - layer.kernel) / layer.stride + 1;
  s.x = {kBatch, layer.in, layer.size, layer.size}, s.y = {kBatch, layer.out, out, out};
  s.weight = {layer.out, layer.in, layer.kernel, layer.kernel};
  auto strides = [&](const Sizes& shape) {
    return channels_last ? channels_last_strides(shape) : dense_strides(shape);
  };
  s.x_stride = strides(s.x), s.weight_stride = strides(s.weight), s.y_stride = strides(s.y);
  return s;
}

std::vector<std::string>& log_lines() {
  static std::vector<std::string> lines;
  return lines;
}
// cuDNN's warnings go through the host.
void open_host() {
  static const pg_host host = [] {
    pg_host table{};
    table.size = sizeof table;
    table.log = [](void*, int32_t, const char* text) { log_lines().push_back(text); };
    return table;
  }();
  pg::host = &host;
  log_lines().clear();
}

// What of them runs on tensor cores.
struct Counts {
  int64_t planned = 0, on_tensor_cores = 0;
  uint64_t workspace = 0;  // the most
};
Counts plan_all(uint32_t dtype, ConvKind kind, bool channels_last, uint64_t limit) {
  Descriptor gpu = vendor_test::described_gpu();
  Wanted wanted;
  wanted.workspace = limit, wanted.what = "a layer";
  Counts counts;
  for (const Layer& layer : resnet50()) {
    auto found = find_conv_plan(shape_of(layer, dtype, kind, channels_last), {nullptr, &gpu}, wanted);
    if (!found) continue;
    counts.planned++;
    counts.on_tensor_cores += found->plan.on_tensor_cores() ? 1 : 0;
    counts.workspace = std::max(counts.workspace, found->plan.workspace());
  }
  return counts;
}

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr ConvKind kKinds[] = {ConvKind::kForward, ConvKind::kInputGradient, ConvKind::kWeightGradient};

}  // namespace

TEST_CASE("All convolutions of ResNet-50 run on tensor cores in bfloat16") {
  open_host();
  REQUIRE(resnet50().size() == kLayers);
  for (ConvKind kind : kKinds) {
    for (bool channels_last : {false, true}) {
      Counts counts = plan_all(PG_BF16, kind, channels_last, workspace_limit(4 * kGiB));
      CHECK(counts.on_tensor_cores == kLayers);
      CHECK(counts.workspace <= 2 * kGiB);
    }
  }
  CHECK(log_lines().empty());
}

TEST_CASE("Where memory is short the convolutions of ResNet-50 have slower engines, and the log says so") {
  for (ConvKind kind : kKinds) {
    open_host();
    Counts counts = plan_all(PG_BF16, kind, false, workspace_limit(0));
    CHECK(counts.planned == kLayers);
    CHECK(counts.on_tensor_cores < kLayers);
    CHECK(counts.workspace <= kGiB / 4);
    REQUIRE(!log_lines().empty());
    CHECK_THAT(log_lines()[0], Catch::Contains("ranks higher for a layer want") && Catch::Contains("268435456"));
  }
}

TEST_CASE("Convolutions of ResNet-50 in float32 stay off the tensor cores, whatever memory there is") {
  open_host();
  for (ConvKind kind : kKinds) {
    Counts counts = plan_all(PG_F32, kind, false, workspace_limit(64 * kGiB));
    CHECK(counts.planned == kLayers);
    CHECK(counts.on_tensor_cores == 0);
  }
}

#endif
