// SPDX-License-Identifier: Apache-2.0
// The other operators, one function each that makes a random call.
#include <functional>

#include "compare.hpp"
#include "subject.hpp"

using namespace contract;

namespace {

constexpr uint32_t kFloats[] = {PG_F32, PG_F64, PG_F16, PG_BF16};
constexpr int kRounds = 6;

// A shape with at least one axis, none of them empty.
Shape solid(Random& r, int64_t rank = 4, int64_t size = 7) {
  Shape shape = r.shape(rank, size, false);
  if (shape.empty()) shape.push_back(1 + r.below(40));
  return shape;
}

double axis_of(Random& r, const Shape& shape) {
  return static_cast<double>(r.below(static_cast<int64_t>(shape.size())));
}

using Make = std::function<Call(Random&, uint32_t)>;
struct Case {
  const char* op;
  Make make;
  double slack = 8;
};

Case reduction(const char* op, double slack = 8, bool positive = false) {
  return {op,
          [op, positive](Random& r, uint32_t dtype) {
            Shape shape = solid(r), axes;
            for (size_t i = 0; i < shape.size(); i++) {
              if (r.chance(50)) axes.push_back(static_cast<int64_t>(i));
            }
            return Call(op).in(r.tensor(dtype, shape, positive)).set("axes", axes).set("keepdim", r.chance(50));
          },
          slack};
}

Case along_axis(const char* op, double slack = 8) {
  return {op,
          [op](Random& r, uint32_t dtype) {
            Shape shape = solid(r);
            double axis = axis_of(r, shape);
            return Call(op).in(r.tensor(dtype, shape, std::string(op) == "cumprod")).set("axis", axis);
          },
          slack};
}

Call matmul(Random& r, uint32_t dtype) {
  int64_t m = r.below(20), k = r.below(40), n = 1 + r.below(24);
  Shape x = {m, k}, y = {k, n};
  bool tx = r.chance(30), ty = r.chance(30);
  if (tx) std::swap(x[0], x[1]);
  if (ty) std::swap(y[0], y[1]);
  if (r.chance(40)) x.insert(x.begin(), 1 + r.below(3));
  if (x.size() == 3 && r.chance(50)) y.insert(y.begin(), r.chance(50) ? x[0] : 1);
  return Call("matmul").in(r.tensor(dtype, x)).in(r.tensor(dtype, y)).set("transpose_x", tx).set("transpose_y", ty);
}

Call linear(Random& r, uint32_t dtype) {
  int64_t in = 1 + r.below(40), out = 1 + r.below(20);
  Call call("linear");
  call.in(r.tensor(dtype, {r.below(9), in})).in(r.tensor(dtype, {out, in}));
  return r.chance(50) ? call.in(r.tensor(dtype, {out})) : call.in(Tensor());
}

Call conv2d(Random& r, uint32_t dtype) {
  int64_t groups = 1 + r.below(2), in = groups * (1 + r.below(3)), out = groups * (1 + r.below(3));
  Call call("conv2d");
  call.in(r.tensor(dtype, {1 + r.below(2), in, 5 + r.below(4), 5 + r.below(4)}));
  call.in(r.tensor(dtype, {out, in / groups, 1 + r.below(3), 1 + r.below(3)}));
  call.in(r.chance(50) ? r.tensor(dtype, {out}) : Tensor());
  return call.set("stride", Shape{1 + r.below(2), 1 + r.below(2)})
      .set("padding", Shape{r.below(2), r.below(2)})
      .set("groups", static_cast<double>(groups));
}

Case pool(const char* op) {
  return {op, [op](Random& r, uint32_t dtype) {
            Call call(op);
            call.in(r.tensor(dtype, {1 + r.below(2), 1 + r.below(3), 4 + r.below(5), 4 + r.below(5)}));
            int64_t kernel = 2 + r.below(2);
            return call.set("kernel", Shape{kernel, kernel})
                .set("padding", Shape{r.below(2), 0})
                .set("ceil_mode", r.chance(30));
          }};
}

Call batch_norm(Random& r, uint32_t dtype) {
  int64_t channels = 1 + r.below(5);
  Call call("batch_norm");
  call.in(r.tensor(dtype, {2 + r.below(3), channels, 1 + r.below(6)}));
  for (int i = 0; i < 4; i++) {
    call.in(r.tensor(dtype, {channels}, i == 3));
    call.inputs.back().kept = i >= 2;
  }
  return call.set("training", r.chance(60));
}

Call layer_norm(Random& r, uint32_t dtype) {
  int64_t width = 2 + r.below(60);
  Call call("layer_norm");
  return call.in(r.tensor(dtype, {1 + r.below(5), width})).in(r.tensor(dtype, {width})).in(r.tensor(dtype, {width}));
}

Call cross_entropy(Random& r, uint32_t dtype) {
  int64_t n = 1 + r.below(9), classes = 2 + r.below(20);
  Call call("cross_entropy");
  call.in(r.tensor(dtype, {n, classes})).in(r.indices({n}, classes)).in(Tensor());
  return call.set("reduction", static_cast<double>(r.below(3))).set("label_smoothing", r.chance(50) ? 0.1 : 0);
}

Call embedding(Random& r, uint32_t dtype) {
  int64_t rows = 1 + r.below(9);
  return Call("embedding").in(r.tensor(dtype, {rows, 1 + r.below(9)})).in(r.indices(r.shape(2, 6), rows));
}

Call index_select(Random& r, uint32_t dtype) {
  Shape shape = solid(r);
  double axis = axis_of(r, shape);
  Tensor index = r.indices({r.below(9)}, shape[static_cast<size_t>(axis)]);
  return Call("index_select").in(r.tensor(dtype, shape)).in(index).set("axis", axis);
}

Call gather(Random& r, uint32_t dtype) {
  Shape shape = solid(r), wanted = shape;
  double axis = axis_of(r, shape);
  auto at = static_cast<size_t>(axis);
  wanted[at] = r.below(6);
  return Call("gather").in(r.tensor(dtype, shape)).in(r.indices(wanted, shape[at])).set("axis", axis);
}

Call cat(Random& r, uint32_t dtype) {
  Shape shape = solid(r, 3);
  double axis = axis_of(r, shape);
  Call call("cat");
  uint32_t parts = 1 + static_cast<uint32_t>(r.below(4));
  for (uint32_t i = 0; i < parts; i++) {
    shape[static_cast<size_t>(axis)] = r.below(6);
    call.in(r.tensor(dtype, shape));
  }
  call.groups = {parts};
  return call.set("axis", axis);
}

Call nonzero(Random& r, uint32_t dtype) { return Call("nonzero").in(r.tensor(dtype, r.shape(3, 8))); }

Call masked_select(Random& r, uint32_t dtype) {
  Shape shape = r.shape(3, 8);
  return Call("masked_select").in(r.tensor(dtype, shape)).in(r.tensor(PG_B8, shape));
}

Call sgd(Random& r, uint32_t dtype) {
  Call call("sgd");
  for (int group = 0; group < 3; group++) {
    for (Shape shape : {Shape{3, 4}, Shape{7}}) {
      call.in(Tensor(dtype, shape));
      call.inputs.back() = r.fill(call.inputs.back(), false, false);
      call.inputs.back().kept = group != 1;
    }
  }
  call.groups = {2, 2, 2, 0};
  return call.set("lr", 0.1).set("step", 2).set("momentum", 0.9).set("weight_decay", 0.01);
}

Call adam(Random& r, uint32_t dtype) {
  Call call("adam");
  for (int group = 0; group < 4; group++) {
    for (Shape shape : {Shape{3, 4}, Shape{7}}) {
      call.in(Tensor(dtype, shape));
      call.inputs.back() = r.fill(call.inputs.back(), group == 3, false);
      call.inputs.back().kept = group != 1;
    }
  }
  call.groups = {2, 2, 2, 2, 0, 0};
  return call.set("lr", 0.1).set("beta1", 0.9).set("beta2", 0.99).set("eps", 1e-8).set("step", 3);
}

void run_cases(const std::vector<Case>& cases, const std::vector<uint32_t>& dtypes, Precision precision) {
  SUBJECT(subject);
  Reference reference(subject);
  Report report;
  for (const Case& one : cases) {
    INFO(one.op);
    CHECK(subject.kernel(one.op) >= 0);
    if (subject.kernel(one.op) < 0) continue;
    Random random(std::hash<std::string>()(one.op));
    for (uint32_t dtype : dtypes) {
      for (int i = 0; i < kRounds; i++)
        compare(subject, *reference, one.make(random, dtype), report, precision, one.slack);
    }
  }
  CHECK(report.refused * 10 < report.compared);
}

const std::vector<uint32_t> kFloatList(std::begin(kFloats), std::end(kFloats));

}  // namespace

TEST_CASE("Reductions and softmax") {
  run_cases({reduction("sum"), reduction("mean"), reduction("prod", 8, true), reduction("amax", 0),
             reduction("amin", 0), reduction("logsumexp"), reduction("var", 32), along_axis("softmax"),
             along_axis("log_softmax", 16), along_axis("cumsum"), along_axis("cumprod", 16)},
            kFloatList, Precision::kFloat64);
  run_cases({reduction("sum"), reduction("amax"), reduction("any"), reduction("all")}, {PG_I64, PG_I32, PG_U8},
            Precision::kExact);
}

TEST_CASE("Products and windows") {
  run_cases(
      {{"matmul", matmul, 16}, {"linear", linear, 16}, {"conv2d", conv2d, 16}, pool("max_pool2d"), pool("avg_pool2d")},
      kFloatList, Precision::kFloat64);
}

TEST_CASE("Normalisation and losses") {
  run_cases({{"batch_norm", batch_norm, 64}, {"layer_norm", layer_norm, 64}, {"cross_entropy", cross_entropy, 16}},
            kFloatList, Precision::kFloat64);
}

TEST_CASE("Indices and joins move elements as they are") {
  run_cases({{"embedding", embedding},
             {"index_select", index_select},
             {"gather", gather},
             {"cat", cat},
             {"masked_select", masked_select},
             {"nonzero", nonzero}},
            kFloatList, Precision::kExact);
  run_cases({{"index_select", index_select}, {"gather", gather}, {"cat", cat}, {"nonzero", nonzero}},
            {PG_I64, PG_U8, PG_B8}, Precision::kExact);
}

TEST_CASE("Optimizers") { run_cases({{"sgd", sgd, 16}, {"adam", adam, 64}}, {PG_F32, PG_F64}, Precision::kFloat64); }

TEST_CASE("Random numbers have the same bits everywhere") {
  auto seeded = [](Call call, Random& r) {
    return call.set("seed", static_cast<double>(r.below(1 << 30))).set("offset", static_cast<double>(r.below(1000)));
  };
  Make dropout = [&](Random& r, uint32_t dtype) {
    return seeded(Call("dropout").in(r.tensor(dtype, r.shape(3, 30))).set("p", 0.5), r);
  };
  Make uniform = [&](Random& r, uint32_t dtype) {
    return seeded(Call("uniform").set("shape", r.shape(3, 30)).set("dtype", dtype), r);
  };
  Make normal = [&](Random& r, uint32_t dtype) {
    return seeded(Call("normal").set("shape", r.shape(3, 30)).set("dtype", dtype), r);
  };
  run_cases({{"dropout", dropout}, {"uniform", uniform}, {"normal", normal}}, kFloatList, Precision::kExact);
}
