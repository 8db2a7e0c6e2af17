// SPDX-License-Identifier: Apache-2.0
// Copies, reductions, rows, indices, random numbers and optimizers against the reference definitions.
#include <cmath>

#include "harness.hpp"
#include "perigee/kernels/reference/index.hpp"
#include "perigee/kernels/reference/optimizer.hpp"
#include "perigee/kernels/reference/random.hpp"
#include "perigee/kernels/reference/reduce.hpp"
#include "perigee/kernels/reference/softmax.hpp"

using namespace test;
namespace ref = pg::reference;

namespace {
void copy(Tensor& target, const Tensor& source) {
  pg_error error = pg::make_error();
  pg_tensor t = target.placed(), s = source.placed();
  INFO(error.message);
  REQUIRE(device().copy(device_self(), 0, &t, &s, 1, 0, &error) == PG_OK);
}
}  // namespace

TEST_CASE("copies between all dtypes and layouts; fills") {
  for (uint32_t from : kAll) {
    for (uint32_t to : kAll) {
      for (Layout a : kLayouts) {
        for (Layout b : kLayouts) {
          Tensor x(from, {5, 7, 33}, a), y(to, {5, 7, 33}, b);
          x.random(0, 9);
          copy(y, x);
          Tensor expected(to, y.shape);
          ref::with_compute(from, [&](auto w) { ref::write(expected.operand(), ref::read<decltype(w)>(x.operand())); });
          check_values(y, expected.values(), 0);
        }
      }
    }
  }
  Tensor wide(PG_F32, {300, 1000}, Layout::reversed), out(PG_F32, {300, 1000}), row(PG_F32, {1, 1000});
  wide.random(), row.random();
  copy(out, wide);
  CHECK(out.values() == wide.values());
  copy(out, row.expand({300, 1000}));
  CHECK(out.values() == row.expand({300, 1000}).values());
  for (uint32_t dtype : kAll) {
    Tensor y(dtype, {3, 5}, Layout::stepped);
    pg_tensor t = y.placed();
    pg_error error = pg::make_error();
    const pg_number one = pg::make_number(1.0);
    REQUIRE(device().fill(device_self(), 0, &t, &one, 1, 0, &error) == PG_OK);
    check_values(y, std::vector<double>(15, 1.0));
  }
}

TEST_CASE("reductions over any axes") {
  for (uint32_t dtype : {PG_F64, PG_F32, PG_BF16, PG_I64, PG_I32, PG_U8}) {
    bool floats = pg::dtype_class(dtype) == PG_M_FLOAT;
    for (Layout layout : kLayouts) {
      for (Dims shape : {Dims{4, 70, 9}, Dims{3, 2000}, Dims{}, Dims{130, 17}}) {
        auto rank = static_cast<uint32_t>(shape.size());
        Tensor x(dtype, shape, layout);
        x.random(-3, 3);
        for (uint32_t mask = rank == 0 ? 0 : 1; mask < (1u << rank) || mask == 0; mask++) {
          Dims axes;
          for (uint32_t i = 0; i < rank; i++) {
            if (mask >> i & 1u) axes.push_back(i);
          }
          double keep = mask % 2;
          auto go = [&](const char* op) { return KernelCall(op).in(x).list("axes", axes).with("keepdim", keep).one(); };
          INFO(pg::dtype_name(dtype) << " " << pg::shape_text(x.view) << " mask " << mask);
          double tol = tolerance(dtype) * 4;
          auto values = x.values();
          Tensor sum = go("sum"), top = go("amax"), low = go("amin");
          // Against sums by hand in float64.
          std::vector<double> total(sum.values().size(), 0), largest(total.size(), -INFINITY),
              smallest(total.size(), INFINITY);
          ref::Dims out_stride(rank, 0);
          int64_t step = 1;
          for (uint32_t i = rank; i-- > 0;) {
            if (mask >> i & 1u) continue;
            out_stride[i] = step, step *= shape[i];
          }
          size_t next = 0;
          ref::each_offset(shape, out_stride, [&](int64_t at) {
            double v = values[next++];
            auto k = static_cast<size_t>(at);
            total[k] += v, largest[k] = std::max(largest[k], v), smallest[k] = std::min(smallest[k], v);
          });
          check_values(sum, total, floats ? tol : 0);
          check_values(top, largest, 0);
          check_values(low, smallest, 0);
          if (!floats || rank == 0) continue;
          auto n = static_cast<double>(x.count()) / static_cast<double>(total.size());
          std::vector<double> mean = total, spread(total.size(), 0), lse(total.size(), 0);
          for (double& v : mean) v /= n;
          next = 0;
          ref::each_offset(shape, out_stride, [&](int64_t at) {
            auto k = static_cast<size_t>(at);
            spread[k] += (values[next] - mean[k]) * (values[next] - mean[k]), lse[k] += std::exp(values[next]), next++;
          });
          for (double& v : spread) v /= n - 1;
          for (double& v : lse) v = std::log(v);
          check_values(go("mean"), mean, tol);
          if (n > 1) check_values(go("var"), spread, tol);
          check_values(go("logsumexp"), lse, tol);
        }
      }
    }
  }
  Tensor large(PG_F32, {300000}), truth(PG_B8, {2, 3});
  large.random(0, 1);
  double exact = 0;
  for (double v : large.values()) exact += v;
  check_values(KernelCall("sum").in(large).one(), {exact}, 1e-7);
  truth.set({0, 1, 0, 1, 1, 1});
  check_values(KernelCall("any").in(truth).list("axes", {0}).one(), {1, 1, 1});
  check_values(KernelCall("all").in(truth).list("axes", {1}).one(), {0, 1});
  check_values(KernelCall("sum").in(truth).one(), {4});
  check_values(KernelCall("prod").in(Tensor(PG_F32, {0})).one(), {1});
  CHECK_THROWS_AS(KernelCall("amax").in(Tensor(PG_F32, {0, 2})).list("axes", {0}).one(), pg::Error);
  Tensor p(PG_F32, {2, 4});
  p.set({1, 5, 5, -2, NAN, 0, 1, NAN});
  check_values(KernelCall("argmax").in(p).with("flat", 0).with("axis", 1).one(), {1, 0});
  check_values(KernelCall("argmin").in(p).with("flat", 0).with("axis", -1).one(), {3, 0});
  check_values(KernelCall("argmax").in(p).one(), {4});
  check_values(KernelCall("cumsum").in(truth).with("axis", 1).one(), {0, 1, 1, 1, 2, 3});
  check_values(KernelCall("all_finite").group({&large, &p}).one(), {0});
  check_values(KernelCall("all_finite").group({&large}).one(), {1});
  Tensor dy(PG_F32, {4, 3, 5}), like(PG_F32, {3, 1});
  dy.random();
  Tensor got = KernelCall("sum_like").in(dy).in(like).one(), expected(PG_F32, {3, 1});
  ref::sum_like(dy.operand(), expected.operand());
  check_close(got, expected, 1e-6, "sum_like");
}

TEST_CASE("softmax and cross entropy") {
  for (uint32_t dtype : {PG_F64, PG_F32, PG_F16, PG_BF16}) {
    for (Layout layout : kLayouts) {
      for (auto [shape, axis] : {std::pair{Dims{4, 37, 5}, 0},
                                 {{4, 37, 5}, 1},
                                 {{4, 37, 5}, 2},
                                 {{3, 70}, 1},
                                 {{7, 11, 64}, 2},
                                 {{2, 39, 8}, 2},
                                 {{90, 2}, 0}}) {
        Tensor x(dtype, shape, layout), y(dtype, shape);
        x.random(-8, 8);
        ref::softmax(x.operand(), axis, y.operand());
        check_close(KernelCall("softmax").in(x).with("axis", axis).one(), y, tolerance(dtype), "softmax");
        ref::log_softmax(x.operand(), axis, y.operand());
        check_close(KernelCall("log_softmax").in(x).with("axis", axis).one(), y, tolerance(dtype), "log_softmax");
        Tensor dy(dtype, shape, layout);
        dy.random();
        for (bool log : {false, true}) {
          (log ? ref::log_softmax : ref::softmax)(x.operand(), axis, y.operand());
          auto p = y.values(), d = dy.values(), dx = d;
          ref::AxisSplit s(y.operand().shape, axis);
          for (int64_t line = 0; line < s.before * s.after; line++) {
            auto at = [&](int64_t i) {
              return static_cast<size_t>((line / s.after * s.length + i) * s.after + line % s.after);
            };
            double total = 0;
            for (int64_t i = 0; i < s.length; i++) total += log ? d[at(i)] : p[at(i)] * d[at(i)];
            for (int64_t i = 0; i < s.length; i++)
              dx[at(i)] = log ? d[at(i)] - std::exp(p[at(i)]) * total : p[at(i)] * (d[at(i)] - total);
          }
          Tensor want(dtype, shape);
          want.set(dx);
          check_close(KernelCall(log ? "log_softmax_grad" : "softmax_grad").in(y).in(dy).with("axis", axis).one(), want,
                      2 * tolerance(dtype), "softmax_grad");
        }
      }
    }
  }
  for (int reduction : {0, 1, 2}) {
    for (double smoothing : {0.0, 0.1}) {
      for (bool weighted : {false, true}) {
        Tensor x(PG_F32, {6, 11, 3}, Layout::reversed), t(PG_I64, {6, 3}), w(PG_F32, {11});
        x.random(), t.random(0, 11), w.random(0.5, 2);
        auto targets = t.values();
        targets[4] = -100;
        t.set(targets);
        ref::CrossEntropy options{-100, static_cast<ref::Reduction>(reduction), smoothing};
        KernelCall call("cross_entropy");
        call.in(x).in(t).with("reduction", reduction).with("label_smoothing", smoothing);
        weighted ? call.in(w) : call.none();
        auto got = call.run();
        Tensor loss(PG_F32, got[0].shape), logs(PG_F32, x.shape), dx(PG_F32, x.shape), dloss(PG_F32, got[0].shape);
        Operand weight = weighted ? w.operand() : Operand();
        ref::cross_entropy(x.operand(), t.operand(), weight, options, loss.operand(), logs.operand());
        check_close(got[0], loss, 2e-6, "loss");
        check_close(got[1], logs, 2e-6, "log_probs");
        dloss.random();
        KernelCall back("cross_entropy_grad");
        back.in(dloss).in(got[1]).in(t).with("reduction", reduction).with("label_smoothing", smoothing);
        weighted ? back.in(w) : back.none();
        ref::cross_entropy_grad(dloss.operand(), got[1].operand(), t.operand(), weight, options, dx.operand());
        check_close(back.one(), dx, 2e-6, "dlogits");
      }
    }
  }
  Tensor x(PG_F32, {2, 3}), t(PG_I64, {2});
  x.random(), t.set({0, 3});
  CHECK_THROWS_WITH(KernelCall("cross_entropy").in(x).in(t).none().run(), Catch::Contains("target 3 at position [2]"));
}

TEST_CASE("reading and writing by index") {
  for (uint32_t dtype : {PG_F32, PG_F64, PG_F16, PG_I64}) {
    for (Layout layout : kLayouts) {
      Tensor x(dtype, {6, 7, 5}, layout), index(PG_I32, {4}, layout), g_index(PG_I64, {4, 3, 5}, layout);
      x.random();
      for (int64_t axis : {0, 1, 2}) {
        double limit = static_cast<double>(x.shape[axis]);
        index.random(0, limit);
        Tensor got = KernelCall("index_select").in(x).in(index).with("axis", axis).one(), want(dtype, got.shape);
        ref::index_select(x.operand(), index.operand(), axis, want.operand(), "index_select");
        check_close(got, want, 0, "index_select");
        Tensor back = KernelCall("index_select_grad").in(got).in(index).in(x).with("axis", axis).one(),
               dx(dtype, x.shape);
        ref::index_select_grad(got.operand(), index.operand(), axis, -1, dx.operand(), "");
        check_close(back, dx, tolerance(dtype), "index_select_grad");
        g_index.random(0, 3);
        got = KernelCall("gather").in(x).in(g_index).with("axis", axis).one();
        want = Tensor(dtype, got.shape);
        ref::gather(x.operand(), g_index.operand(), axis, want.operand());
        check_close(got, want, 0, "gather");
        if (dtype == PG_I64) continue;
        back = KernelCall("gather_grad").in(got).in(g_index).in(x).with("axis", axis).one();
        ref::gather_grad(got.operand(), g_index.operand(), axis, dx.operand());
        check_close(back, dx, tolerance(dtype), "gather_grad");
      }
      Tensor mask(PG_B8, {7, 5}, layout), part(dtype, {6, 2, 5}, layout);
      mask.random(0, 2), part.random();
      Tensor picked = KernelCall("masked_select").in(x).in(mask).one();
      Tensor all(dtype, {x.count()});
      int64_t n = ref::masked_select(x.operand(), mask.operand(), x.shape, all.operand());
      REQUIRE(picked.count() == n);
      auto values = all.values();
      values.resize(static_cast<size_t>(n));
      check_values(picked, values, 0);
      Tensor dx(dtype, x.shape);
      ref::masked_select_grad(picked.operand(), mask.operand(), dx.operand());
      check_close(KernelCall("masked_select_grad").in(picked).in(mask).in(x).one(), dx, 0, "masked_select_grad");
      Tensor joined = KernelCall("cat").group({&x, &part}).with("axis", 1).one();
      CHECK(joined.shape == Dims{6, 9, 5});
      auto cut = KernelCall("cat_grad").in(joined).group({&x, &part}).with("axis", 1).run();
      CHECK(cut[0].values() == x.values());
      CHECK(cut[1].values() == part.values());
    }
  }
  Tensor weight(PG_F32, {10, 4}), tokens(PG_I64, {2, 3});
  weight.random(), tokens.set({1, 2, 3, 4, 12, 0});
  CHECK_THROWS_WITH(KernelCall("embedding").in(weight).in(tokens).one(),
                    Catch::Contains("token 12 at position [2, 2]"));
  Tensor sparse(PG_F32, {3, 4}), scalar(PG_F32, {});
  sparse.set({0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 3}), scalar.set({5});
  check_values(KernelCall("nonzero").in(sparse).one(), {0, 1, 1, 0, 2, 3});
  CHECK(KernelCall("nonzero").in(scalar).one().shape == Dims{1, 0});
  Tensor classes(PG_I64, {2});
  classes.set({2, 0});
  check_values(KernelCall("one_hot").in(classes).with("classes", 3).one(), {0, 0, 1, 1, 0, 0});
  Tensor dy(PG_F32, {2}), whole(PG_F32, {3, 4});
  dy.set({7, 8}), whole.random();
  auto sliced = [&](KernelCall& c) {
    return c.list("starts", {-2, 0}).list("stops", {-1, 4}).list("steps", {1, 2}).list("drop", {1, 0}).one();
  };
  KernelCall grad("slice_grad"), scatter("slice_scatter");
  check_values(sliced(grad.in(dy).in(whole)), {0, 0, 0, 0, 7, 0, 8, 0, 0, 0, 0, 0});
  auto values = whole.values();
  values[4] = 7, values[6] = 8;
  check_values(sliced(scatter.in(whole).in(dy)), values);
}

TEST_CASE("random numbers are those of the specification, bit for bit") {
  ref::Draw draw{123456789012345ull, 77};
  for (uint32_t dtype : {PG_F64, PG_F32, PG_F16, PG_BF16}) {
    Tensor want(dtype, {9001});
    KernelCall uniform("uniform"), normal("normal");
    uniform.seed = normal.seed = {draw.seed, draw.offset};
    ref::uniform(draw, -1, 3, want.operand());
    CHECK(uniform.list("shape", {9001}).with("dtype", dtype).with("low", -1).with("high", 3).one().bytes == want.bytes);
    ref::normal(draw, 1, 2, want.operand());
    CHECK(normal.list("shape", {9001}).with("dtype", dtype).with("mean", 1).with("std", 2).one().bytes == want.bytes);
    Tensor x(dtype, {91, 99}), y(dtype, {91, 99}), mask(PG_B8, {91, 99});
    x.random();
    KernelCall dropout("dropout");
    dropout.seed = {draw.seed, draw.offset};
    auto got = dropout.in(x).with("p", 0.3).with("training", 1).run();
    ref::dropout(draw, x.operand(), 0.3, true, y.operand(), mask.operand());
    CHECK(got[0].bytes == y.bytes);
    CHECK(got[1].bytes == mask.bytes);
    Tensor p(dtype, {1000}), hits(dtype, {1000});
    p.random(0, 1);
    KernelCall bernoulli("bernoulli");
    bernoulli.seed = {draw.seed, draw.offset};
    ref::bernoulli(draw, p.operand(), hits.operand());
    CHECK(bernoulli.in(p).one().bytes == hits.bytes);
  }
  Tensor integers(PG_I64, {5000});
  KernelCall randint("randint");
  randint.seed = {draw.seed, draw.offset};
  ref::randint(draw, -5, 90, integers.operand());
  CHECK(randint.list("shape", {5000}).with("low", -5).with("high", 90).one().bytes == integers.bytes);
  for (uint32_t dtype : {PG_I64, PG_I32, PG_F32}) {
    for (int n : {1, 7, 2048, 2049, 5000, 300000}) {
      Tensor order(dtype, {n});
      KernelCall randperm("randperm");
      randperm.seed = {draw.seed, draw.offset};
      ref::randperm(draw, order.operand());
      CHECK(randperm.with("n", n).with("dtype", dtype).one().bytes == order.bytes);
    }
  }
}

TEST_CASE("optimizer steps over many tensors, and all_reduce") {
  for (uint32_t dtype : {PG_F32, PG_F64, PG_BF16}) {
    std::vector<Tensor> t;
    for (int k = 0; k < 4; k++) {
      for (Dims shape : {Dims{3, 4}, Dims{20000}, Dims{}, Dims{0}}) {
        t.emplace_back(dtype, shape, k == 1 ? Layout::reversed : Layout::dense);
        t.back().random(k == 3 ? 0.1 : -1, 1);
      }
    }
    std::vector<Tensor> want = t;
    KernelCall adam("adam");
    for (size_t k = 0; k < 4; k++) adam.group({&t[4 * k], &t[4 * k + 1], &t[4 * k + 2], &t[4 * k + 3]});
    adam.group({}).group({}).with("lr", 0.01).with("weight_decay", 0.1).with("step", 3).with("decoupled", 1).run();
    const double adam_attrs[] = {0.01, 0.1, 3, 1, 0, 0.9, 0.999, 1e-8, 1};
    for (size_t i = 0; i < 4; i++) {
      ref::update(pg::update::Adam<double>(adam_attrs),
                  {want[i].operand(), want[4 + i].operand(), want[8 + i].operand(), want[12 + i].operand(), {}});
    }
    for (size_t i = 0; i < 16; i++) check_close(t[i], want[i], tolerance(dtype), "adam");
    KernelCall sgd("sgd");
    for (size_t k = 0; k < 3; k++) sgd.group({&t[4 * k], &t[4 * k + 1], &t[4 * k + 2], &t[4 * k + 3]});
    sgd.group({}).with("lr", 0.1).with("momentum", 0.9).with("weight_decay", 0.01).with("nesterov", 1).run();
    want = t;
    sgd.with("step", 2).run();
    const double sgd_attrs[] = {0.1, 0.01, 2, 1, 0, 0.9, 0, 1};
    for (size_t i = 0; i < 4; i++) {
      ref::update(pg::update::Sgd<double>(sgd_attrs),
                  {want[i].operand(), want[4 + i].operand(), want[8 + i].operand()});
      check_close(t[i], want[i], tolerance(dtype), "sgd");
    }
    auto ys = KernelCall("all_reduce").group({&t[0], &t[4], &t[8]}).with("op", 1).run();
    auto a = t[0].values(), b = t[4].values(), c = t[8].values();
    for (size_t i = 0; i < a.size(); i++) a[i] = (a[i] + b[i] + c[i]) / 3;
    for (const Tensor& y : ys) check_values(y, a, tolerance(dtype));
  }
}
