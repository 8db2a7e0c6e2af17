// SPDX-License-Identifier: Apache-2.0
// Convolutions by the stand-in of cuDNN and by the own kernels, against plain loops.
#include <catch2/catch.hpp>
#include <cmath>

#include "cudnn/conv.hpp"
#include "fixture.hpp"
#include "vendor.hpp"

using namespace cuda::dnn;
using namespace vendor_test;

namespace {

struct Case {
  Sizes x, weight;
  int64_t groups = 1, stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
};

const Case kCases[] = {
    {{2, 4, 6, 5}, {6, 4, 3, 2}},
    {{2, 4, 7, 6}, {6, 2, 3, 3}, 2, {2, 1}, {1, 2}},
    {{1, 3, 8, 9}, {2, 3, 3, 2}, 1, {1, 2}, {2, 1}, {2, 3}},
    {{2, 4, 5, 5}, {4, 1, 3, 3}, 4, {1, 1}, {1, 1}},
    {{3, 2, 4, 4}, {4, 2, 1, 1}, 1, {3, 3}},
    {{2, 4, 4, 3, 5}, {6, 4, 2, 3, 2}},
    {{1, 4, 5, 6, 4}, {2, 2, 3, 2, 3}, 2, {2, 1, 3}, {1, 0, 2}, {1, 2, 1}},
    {{2, 3, 3, 4, 2}, {2, 3, 1, 1, 1}, 1, {1, 2, 1}},
};

ConvShape shape_of(const Case& c, ConvKind kind, uint32_t dtype) {
  ConvShape s;
  s.kind = kind, s.dtype = dtype, s.x = c.x, s.weight = c.weight, s.groups = c.groups;
  std::copy_n(c.stride, 3, s.stride), std::copy_n(c.padding, 3, s.padding), std::copy_n(c.padding, 3, s.behind),
      std::copy_n(c.dilation, 3, s.dilation);
  s.y = c.x;
  s.y[1] = c.weight[0];
  for (size_t i = 0; i < s.axes(); i++) {
    s.y[i + 2] = (c.x[i + 2] + 2 * c.padding[i] - c.dilation[i] * (c.weight[i + 2] - 1) - 1) / c.stride[i] + 1;
  }
  s.x_stride = dense_strides(s.x), s.weight_stride = dense_strides(s.weight), s.y_stride = dense_strides(s.y);
  return s;
}

int64_t at(const Sizes& stride, const Sizes& place) {
  int64_t sum = 0;
  for (size_t i = 0; i < place.size(); i++) sum += place[i] * stride[i];
  return sum;
}
// Element i in row-major order.
Sizes place_of(const Sizes& shape, int64_t i) {
  Sizes place = shape;
  for (size_t axis = shape.size(); axis-- > 0; i /= shape[axis]) place[axis] = i % shape[axis];
  return place;
}

// The strides of [o, c, ...] with o next to each other, then c.
Sizes turned_strides(const Sizes& shape) {
  Sizes stride = shape;
  int64_t step = 1;
  for (size_t i = 0; i < shape.size(); step *= shape[i++]) stride[i] = step;
  return stride;
}

// The result, dense, and the sums of the terms' sizes.
void convolve(const ConvShape& s, const Data& x, const Data& weight, const Data& y, std::vector<double>& sums,
              std::vector<double>& sizes) {
  int64_t in = s.weight[1], out = s.weight[0] / s.groups;
  for (int64_t i = 0; i < count_of(s.y); i++) {
    Sizes to = place_of(s.y, i);
    for (int64_t j = 0; j < count_of(s.weight); j++) {
      Sizes tap = place_of(s.weight, j), from = to;
      if (tap[0] != to[1]) continue;
      from[1] = to[1] / out * in + tap[1];
      bool inside = true;
      for (size_t axis = 0; axis < s.axes(); axis++) {
        int64_t place = to[axis + 2] * s.stride[axis] - s.padding[axis] + tap[axis + 2] * s.dilation[axis];
        from[axis + 2] = place, inside = inside && place >= 0 && place < s.x[axis + 2];
      }
      if (!inside) continue;
      double a, b;
      int64_t target;
      if (s.kind == ConvKind::kForward) {
        a = x.at(at(s.x_stride, from)), b = weight.at(at(s.weight_stride, tap)), target = i;
      } else if (s.kind == ConvKind::kInputGradient) {
        a = y.at(at(s.y_stride, to)), b = weight.at(at(s.weight_stride, tap)), target = at(dense_strides(s.x), from);
      } else {
        a = y.at(at(s.y_stride, to)), b = x.at(at(s.x_stride, from)), target = j;
      }
      sums[static_cast<size_t>(target)] += a * b, sizes[static_cast<size_t>(target)] += std::fabs(a * b);
    }
  }
}

// Elements from a tensor's first to behind its last: there is no more of it, and what lies behind is guarded.
int64_t extent(const Sizes& shape, const Sizes& stride) {
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); i++) last += (shape[i] - 1) * stride[i];
  return count_of(shape) == 0 ? 0 : last + 1;
}

struct ConvSkips {
  int64_t x = 0, weight = 0, result = 0;
};

void check_convolution(const Convolution& convolution, const ConvShape& s, ConvSkips skip = {}) {
  Data x(s.dtype, extent(s.x, s.x_stride), 1, skip.x),
      weight(s.dtype, extent(s.weight, s.weight_stride), 2, skip.weight), y(s.dtype, extent(s.y, s.y_stride), 3),
      bias(s.dtype, (s.y[1] - 1) * s.bias_stride + 1, 4), result(s.dtype, count_of(s.result()), 5, skip.result);
  Workspace workspace(convolution.workspace());
  Stream stream;
  ConvData d{x.address(),      weight.address(),   y.address(), s.bias ? bias.address() : nullptr,
             result.address(), workspace.address()};
  (s.kind == ConvKind::kForward ? d.y : s.kind == ConvKind::kInputGradient ? d.x : d.weight) = nullptr;
  convolution.run(stream.native, d);
  stream.finish();
  std::vector<double> sums(static_cast<size_t>(count_of(s.result())), 0), sizes = sums;
  convolve(s, x, weight, y, sums, sizes);
  double worst = 0;
  for (size_t i = 0; i < sums.size(); i++) {
    auto position = static_cast<int64_t>(i);
    double addend = s.bias ? bias.at(position / (count_of(s.y) / s.y[0] / s.y[1]) % s.y[1] * s.bias_stride) : 0;
    double error = std::fabs(result.at(position) - sums[i] - addend);
    worst = std::max(worst, error / (sizes[i] + std::fabs(addend) + 1));
  }
  CHECK(worst <= tolerance(s.dtype, 32));
}

void check_cudnn(const ConvShape& s, ConvSkips skip = {}, uint64_t executions = 1) {
  auto convolution = make_cudnn_convolution(s, 0, "it");
  REQUIRE(convolution);
  uint64_t before = calls_of("cudnnBackendExecute");
  check_convolution(*convolution, s, skip);
  CHECK(calls_of("cudnnBackendExecute") - before == executions);
}

constexpr ConvKind kKinds[] = {ConvKind::kForward, ConvKind::kInputGradient, ConvKind::kWeightGradient};

}  // namespace

TEST_CASE("layouts are told apart") {
  Four shape = {2, 3, 4, 5};
  CHECK(layout_of(shape, {60, 20, 5, 1}) == Layout::kDense);
  CHECK(layout_of(shape, {60, 1, 15, 3}) == Layout::kChannelsLast);
  CHECK(layout_of(shape, {120, 20, 5, 1}) == Layout::kOther);
  CHECK(layout_of(shape, {0, 20, 5, 1}) == Layout::kOther);
  CHECK(layout_of(Four{2, 1, 4, 5}, {20, 77, 5, 1}) == Layout::kDense);
  CHECK(layout_of(Four{1, 3, 1, 1}, {9, 1, 9, 9}) == Layout::kDense);  // either: dense
  CHECK(told_strides(Four{2, 1, 4, 5}, Layout::kDense) == Four{20, 20, 5, 1});
  Sizes volume = {2, 3, 4, 5, 6};
  CHECK(layout_of(volume, {360, 120, 30, 6, 1}) == Layout::kDense);
  CHECK(layout_of(volume, {360, 1, 90, 18, 3}) == Layout::kChannelsLast);
  CHECK(layout_of(volume, {360, 120, 1, 4, 20}) == Layout::kOther);
  CHECK(told_strides(volume, Layout::kChannelsLast) == Sizes{360, 1, 90, 18, 3});
}

TEST_CASE("only what cuDNN cannot read is copied, at first") {
  ConvShape s = shape_of(kCases[0], ConvKind::kForward, PG_F32);
  CHECK(choose_layouts(s, true).all_dense());
  s.x_stride = channels_last_strides(s.x);
  s.weight_stride = {1, 100, 2, 1};
  Layouts given = choose_layouts(s, true), dense = choose_layouts(s, false);
  CHECK_FALSE(given.copy_x);
  CHECK(given.x == Layout::kChannelsLast);
  CHECK(given.copy_weight);
  CHECK(dense.copy_x);
  CHECK(dense.all_dense());
}

TEST_CASE("convolutions by cuDNN") {
  open_host();
  for (uint32_t dtype : {PG_F32, PG_F64, PG_F16, PG_BF16}) {
    for (ConvKind kind : kKinds) {
      for (const Case& c : kCases) {
        CAPTURE(pg::dtype_name(dtype), static_cast<int>(kind), c.groups);
        ConvShape s = shape_of(c, kind, dtype);
        check_cudnn(s);
        s.weight_stride = turned_strides(s.weight);
        if (kind != ConvKind::kWeightGradient) check_cudnn(s);
        s.x_stride = channels_last_strides(s.x);
        if (kind != ConvKind::kInputGradient) check_cudnn(s);
      }
    }
  }
}

TEST_CASE("a bias is added, by cuDNN for 16-bit floats") {
  open_host();
  for (uint32_t dtype : {PG_F32, PG_F64, PG_F16, PG_BF16}) {
    for (const Case& c : {kCases[1], kCases[6]}) {
      for (int64_t stride : {1, 2}) {
        ConvShape s = shape_of(c, ConvKind::kForward, dtype);
        s.bias = true, s.bias_stride = stride;
        check_cudnn(s);
      }
    }
  }
}

TEST_CASE("unaligned addresses get a plan of their own, or the own kernels") {
  open_host();
  for (ConvSkips skip : {ConvSkips{1, 0, 0}, ConvSkips{0, 1, 0}, ConvSkips{0, 0, 1}}) {
    check_cudnn(shape_of(kCases[0], ConvKind::kForward, PG_F32), skip, 1);
    check_cudnn(shape_of(kCases[0], ConvKind::kForward, PG_F16), skip, 0);
    check_cudnn(shape_of(kCases[1], ConvKind::kForward, PG_F64), skip, 1);
    ConvShape biased = shape_of(kCases[0], ConvKind::kForward, PG_BF16);
    biased.bias = true;
    check_cudnn(biased, skip, 0);
  }
}

TEST_CASE("plans are found while the handle that executes them is in use") {
  open_host();
  Stream stream;
  cuda::DnnHandle held(0, stream.native);
  CHECK(make_cudnn_convolution(shape_of(kCases[0], ConvKind::kForward, PG_F32), 0, "it"));
}

TEST_CASE("the workspace of a convolution follows the free memory") {
  open_host();
  ConvShape s = shape_of({{1, 1024, 4, 4}, {1024, 1024, 3, 3}}, ConvKind::kForward, PG_BF16);
  const auto wanted = static_cast<uint64_t>(64 * count_of(s.weight));  // by the first engine of the stand-in
  REQUIRE(wanted > uint64_t{256} << 20);
  auto workspace = [&](uint64_t memory) {
    standin::set_memory(memory);
    log_lines().clear();
    return make_cudnn_convolution(s, 0, "it")->workspace();
  };
  CHECK(workspace(4 * wanted) >= wanted);
  CHECK(log_lines().empty());
  CHECK(workspace(wanted) < wanted);
  REQUIRE(!log_lines().empty());
  CHECK_THAT(log_lines()[0], Catch::Contains("ranks higher for it want " + std::to_string(wanted) + " bytes"));
  standin::reset();
}

TEST_CASE("what cuDNN refuses is computed by own kernels, and said") {
  open_host();
  standin::refuse_graphs(true);
  for (uint32_t dtype : {PG_F32, PG_F64, PG_F16, PG_BF16}) {
    for (ConvKind kind : kKinds) {
      for (const Case& c : kCases) {
        ConvShape s = shape_of(c, kind, dtype);
        s.bias = kind == ConvKind::kForward, s.bias_stride = 2;
        log_lines().clear();
        auto convolution = make_convolution(s, 0, "a convolution");
        REQUIRE(log_lines().size() == 1);
        CHECK(log_lines()[0] ==
              "cuDNN has no engine for a convolution (no engine for the graph): own kernels compute it");
        check_convolution(*convolution, s);
        s.weight_stride = turned_strides(s.weight);
        if (kind != ConvKind::kWeightGradient) check_convolution(*make_direct_convolution(s), s);
      }
    }
  }
  standin::refuse_graphs(false);
}

TEST_CASE("sums over nothing") {
  open_host();
  ConvShape s = shape_of({{2, 0, 4, 4}, {3, 0, 2, 2}}, ConvKind::kForward, PG_F32);
  s.bias = true;
  check_convolution(*make_convolution(s, 0, "it"), s);
  ConvShape gradient = shape_of({{2, 3, 4, 4}, {0, 3, 2, 2}}, ConvKind::kInputGradient, PG_F32);
  check_convolution(*make_convolution(gradient, 0, "it"), gradient);
  ConvShape none = shape_of({{0, 3, 4, 4}, {2, 3, 2, 2}}, ConvKind::kWeightGradient, PG_F32);
  check_convolution(*make_convolution(none, 0, "it"), none);
}

TEST_CASE("a failing execution names the call and its status") {
  open_host();
  ConvShape s = shape_of(kCases[0], ConvKind::kForward, PG_F32);
  auto convolution = make_convolution(s, 0, "it");
  standin::fail("cudnnBackendExecute", 1, cudaErrorUnknown);
  CHECK_THROWS_WITH(check_convolution(*convolution, s), "cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED");
}
