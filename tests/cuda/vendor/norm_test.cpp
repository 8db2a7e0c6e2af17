// SPDX-License-Identifier: Apache-2.0
// Batch normalisation and its gradient by the stand-in of cuDNN, against plain loops.
#include <catch2/catch.hpp>
#include <cmath>

#include "cudnn/norm.hpp"
#include "fixture.hpp"
#include "vendor.hpp"

using namespace cuda::dnn;
using namespace vendor_test;

namespace {

constexpr float kEps = 0x1p-10f, kMomentum = 0.25f;

NormShape shape_of(NormKind kind, uint32_t dtype, Four x = {3, 4, 2, 5}) {
  NormShape s;
  s.kind = kind, s.dtype = dtype, s.x = x, s.running = kind == NormKind::kForward;
  return s;
}

struct Tensors {
  Data x, dy, result, weight, bias, mean, invstd, dweight, dbias, running_mean, running_var;

  Tensors(const NormShape& s, int64_t skip)
      : x(s.dtype, count_of(s.x), 1, skip),
        dy(s.dtype, count_of(s.x), 2),
        result(s.dtype, count_of(s.x), 3),
        weight(PG_F32, s.channels(), 4),
        bias(PG_F32, s.channels(), 5),
        mean(PG_F32, s.channels(), 6),
        invstd(PG_F32, s.channels(), 7),
        dweight(PG_F32, s.channels(), 8),
        dbias(PG_F32, s.channels(), 9),
        running_mean(PG_F32, s.channels(), 10),
        running_var(PG_F32, s.channels(), 11) {}

  NormData data(const NormShape& s, void* workspace, bool spare) const {
    NormData d{};
    d.x = x.address(), d.weight = weight.address(), d.result = result.address(), d.workspace = workspace;
    d.momentum = kMomentum, d.eps = kEps;
    if (s.kind == NormKind::kGradient) {
      d.dy = dy.address(), d.mean = mean.address(), d.invstd = invstd.address();
      if (!spare) d.dweight = dweight.address(), d.dbias = dbias.address();
      return d;
    }
    d.bias = bias.address();
    if (!spare) d.mean = mean.address(), d.invstd = invstd.address();
    if (s.running) d.running_mean = running_mean.address(), d.running_var = running_var.address();
    return d;
  }
};

// body(place, channel) for every element.
template <class Body>
void each(const NormShape& s, const Body& body) {
  int64_t plane = s.x[2] * s.x[3];
  for (int64_t i = 0; i < count_of(s.x); i++) body(i, i / plane % s.channels());
}

void check_near(double got, double expected, double tolerance) {
  CHECK(std::fabs(got - expected) <= tolerance * (1 + std::fabs(expected)));
}

void check_forward(const NormShape& s, const Tensors& t, const std::vector<double>& old_mean,
                   const std::vector<double>& old_var, bool spare) {
  double close = tolerance(s.dtype, 8);
  auto channels = static_cast<size_t>(s.channels());
  double count = static_cast<double>(count_of(s.x) / s.channels());
  std::vector<double> mean(channels), variance(channels);
  each(s, [&](int64_t i, int64_t c) { mean[static_cast<size_t>(c)] += t.x.at(i) / count; });
  each(s, [&](int64_t i, int64_t c) {
    double off = t.x.at(i) - mean[static_cast<size_t>(c)];
    variance[static_cast<size_t>(c)] += off * off / count;
  });
  each(s, [&](int64_t i, int64_t c) {
    auto k = static_cast<size_t>(c);
    double normal = (t.x.at(i) - mean[k]) / std::sqrt(variance[k] + kEps);
    check_near(t.result.at(i), normal * t.weight.at(c) + t.bias.at(c), close);
  });
  for (size_t k = 0; k < channels; k++) {
    auto c = static_cast<int64_t>(k);
    if (!spare) {
      check_near(t.mean.at(c), mean[k], 1e-5);
      check_near(t.invstd.at(c), 1 / std::sqrt(variance[k] + kEps), 1e-5);
    }
    double unbiased = variance[k] * count / (count - 1);
    check_near(t.running_mean.at(c), s.running ? 0.75 * old_mean[k] + 0.25 * mean[k] : old_mean[k], 1e-5);
    check_near(t.running_var.at(c), s.running ? 0.75 * old_var[k] + 0.25 * unbiased : old_var[k], 1e-5);
  }
}

void check_gradient(const NormShape& s, const Tensors& t, bool spare) {
  double close = tolerance(s.dtype, 16), count = static_cast<double>(count_of(s.x) / s.channels());
  auto channels = static_cast<size_t>(s.channels());
  std::vector<double> sum(channels), product(channels);
  auto normal = [&](int64_t i, int64_t c) { return (t.x.at(i) - t.mean.at(c)) * t.invstd.at(c); };
  each(s, [&](int64_t i, int64_t c) {
    sum[static_cast<size_t>(c)] += t.dy.at(i), product[static_cast<size_t>(c)] += t.dy.at(i) * normal(i, c);
  });
  each(s, [&](int64_t i, int64_t c) {
    auto k = static_cast<size_t>(c);
    double centred = t.dy.at(i) - sum[k] / count - normal(i, c) * product[k] / count;
    check_near(t.result.at(i), t.weight.at(c) * t.invstd.at(c) * centred, close);
  });
  for (int64_t c = 0; c < s.channels() && !spare; c++) {
    check_near(t.dweight.at(c), product[static_cast<size_t>(c)], 1e-5);
    check_near(t.dbias.at(c), sum[static_cast<size_t>(c)], 1e-5);
  }
}

// spare: the results of each channel are not wanted.
void check_norm(const NormShape& s, const Norm& norm, bool spare) {
  Tensors t(s, 0);
  std::vector<double> old_mean, old_var;
  for (int64_t c = 0; c < s.channels(); c++) {
    old_mean.push_back(t.running_mean.at(c)), old_var.push_back(t.running_var.at(c));
  }
  Workspace workspace(norm.workspace());
  Stream stream;
  NormData d = t.data(s, workspace.address(), spare);
  REQUIRE(norm.takes(d));
  norm.run(stream.native, d);
  d.eps = d.momentum = -1;  // read already
  stream.finish();
  if (s.kind == NormKind::kForward)
    check_forward(s, t, old_mean, old_var, spare);
  else
    check_gradient(s, t, spare);
}

}  // namespace

TEST_CASE("batch norms by cuDNN") {
  open_host();
  for (uint32_t dtype : {PG_F32, PG_F16, PG_BF16}) {
    for (NormKind kind : {NormKind::kForward, NormKind::kGradient}) {
      for (Four x : {Four{3, 4, 2, 5}, Four{8, 3, 1, 1}, Four{1, 2, 7, 1}}) {
        for (bool spare : {false, true}) {
          CAPTURE(pg::dtype_name(dtype), static_cast<int>(kind), x[0], spare);
          NormShape s = shape_of(kind, dtype, x);
          s.running = s.running && !spare;
          auto norm = make_norm(s, 0, "a norm");
          REQUIRE(norm);
          uint64_t before = calls_of("cudnnBackendExecute");
          check_norm(s, *norm, spare);
          CHECK(calls_of("cudnnBackendExecute") - before == 1);
        }
      }
    }
  }
}

TEST_CASE("a norm's workspace holds the plan's and the old statistics") {
  open_host();
  NormShape s = shape_of(NormKind::kForward, PG_F32);
  CHECK(make_norm(s, 0, "it")->workspace() >= 2 * 4 * static_cast<uint64_t>(count_of(s.x)) + 100 + 4 * 16);
}

TEST_CASE("norms that cuDNN has no engine for are the own kernels', which is said") {
  open_host();
  log_lines().clear();
  CHECK(make_norm(shape_of(NormKind::kGradient, PG_F32, {4, 1, 2, 2}), 0, "a norm") == nullptr);
  REQUIRE(log_lines().size() == 1);
  CHECK(log_lines()[0] == "cuDNN has no engine for a norm (no engine for the graph): own kernels compute it");
  standin::refuse_graphs(true);
  CHECK(make_norm(shape_of(NormKind::kForward, PG_F32), 0, "a norm") == nullptr);
  standin::refuse_graphs(false);
}

TEST_CASE("unaligned addresses are not given to a norm's plan") {
  open_host();
  NormShape s = shape_of(NormKind::kForward, PG_F32);
  auto norm = make_norm(s, 0, "it");
  Workspace workspace(norm->workspace());
  CHECK(norm->takes(Tensors(s, 0).data(s, workspace.address(), false)));
  CHECK_FALSE(norm->takes(Tensors(s, 1).data(s, workspace.address(), false)));
}

TEST_CASE("a norm's failing execution names the call and its status") {
  open_host();
  NormShape s = shape_of(NormKind::kGradient, PG_F32);
  auto norm = make_norm(s, 0, "it");
  standin::fail("cudnnBackendExecute", 1, cudaErrorUnknown);
  CHECK_THROWS_WITH(check_norm(s, *norm, false), "cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED");
}

TEST_CASE("a norm's launch can be captured, and keeps its numbers") {
  open_host();
  NormShape s = shape_of(NormKind::kForward, PG_F32);
  auto norm = make_norm(s, 0, "it");
  Tensors t(s, 0), same(s, 0);
  Workspace workspace(norm->workspace()), other(norm->workspace());
  Stream stream;
  norm->run(stream.native, same.data(s, other.address(), false));
  stream.finish();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t plan = nullptr;
  REQUIRE(cudaStreamBeginCapture(stream.native, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  {
    NormData d = t.data(s, workspace.address(), false);
    norm->run(stream.native, d);
    d.eps = d.momentum = -1;
  }
  REQUIRE(cudaStreamEndCapture(stream.native, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&plan, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(plan, stream.native) == cudaSuccess);
  stream.finish();
  for (int64_t i = 0; i < count_of(s.x); i++) CHECK(t.result.at(i) == same.result.at(i));
  for (int64_t c = 0; c < s.channels(); c++) CHECK(t.running_var.at(c) == same.running_var.at(c));
  REQUIRE(cudaGraphExecDestroy(plan) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
}
