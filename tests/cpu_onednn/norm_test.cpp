// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include "harness.hpp"

using namespace harness;

namespace {

double norm_tolerance(uint32_t dtype) { return dtype == PG_F64 ? 1e-11 : dtype == PG_F32 ? 2e-5 : 0.03; }
uint32_t statistics(uint32_t dtype) { return dtype == PG_F64 ? PG_F64 : PG_F32; }
size_t at(int64_t i) { return static_cast<size_t>(i); }

void check_batch_norm(uint32_t dtype, Dims shape, Layout layout, bool training, bool affine, bool tracked) {
  int64_t channels = shape[1], inner = 1, eps_scale = 1;
  for (size_t i = 2; i < shape.size(); i++) inner *= shape[i];
  double eps = 1e-3 * static_cast<double>(eps_scale), momentum = 0.2, count = static_cast<double>(shape[0] * inner);
  Tensor x(dtype, shape, layout), dy(dtype, shape, layout), y(dtype, shape), dx(dtype, shape);
  Tensor weight(dtype, {channels}, Layout::kStepped), bias(dtype, {channels}), rm(statistics(dtype), {channels}),
      rv = rm;
  Tensor mean = rm, invstd = rm, dweight(affine ? dtype : statistics(dtype), {channels}), dbias = dweight;
  x.random(1, 3), dy.random(), weight.random(), bias.random(), rm.random(), rv.random(0.5, 2);
  Tensor old_mean = rm, old_var = rv;
  std::vector<double> em(at(channels)), ev(at(channels)), ey(at(x.size())), sd(at(channels)), sdx(at(channels)),
      edx(at(x.size()));
  auto channel = [&](int64_t i) { return i / inner % channels; };
  for (int64_t i = 0; i < x.size(); i++) em[at(channel(i))] += x.get(i) / count;
  for (int64_t i = 0; i < x.size(); i++) ev[at(channel(i))] += std::pow(x.get(i) - em[at(channel(i))], 2) / count;
  std::vector<double> new_mean(at(channels)), new_var(at(channels)), is(at(channels));
  for (int64_t c = 0; c < channels; c++) {
    new_mean[at(c)] = (1 - momentum) * rm.get(c) + momentum * em[at(c)];
    new_var[at(c)] = (1 - momentum) * rv.get(c) + momentum * ev[at(c)] * count / (count - 1);
    if (!training)
      em[at(c)] = rm.get(c), ev[at(c)] = rv.get(c), new_mean[at(c)] = rm.get(c), new_var[at(c)] = rv.get(c);
    is[at(c)] = 1 / std::sqrt(ev[at(c)] + eps);
  }
  auto xh = [&](int64_t i) { return (x.get(i) - em[at(channel(i))]) * is[at(channel(i))]; };
  auto w = [&](int64_t i) { return affine ? weight.get(channel(i)) : 1; };
  for (int64_t i = 0; i < x.size(); i++) {
    ey[at(i)] = xh(i) * w(i) + (affine ? bias.get(channel(i)) : 0);
    sd[at(channel(i))] += dy.get(i), sdx[at(channel(i))] += dy.get(i) * xh(i);
  }
  for (int64_t i = 0; i < x.size(); i++) {
    double inside = dy.get(i) - (training ? sd[at(channel(i))] / count + xh(i) * sdx[at(channel(i))] / count : 0);
    edx[at(i)] = w(i) * is[at(channel(i))] * inside;
  }
  std::vector<Attr> attrs = {Attr::flag("training", training), {"momentum", momentum}, {"eps", eps}};
  Tensor *pw = affine ? &weight : nullptr, *pb = affine ? &bias : nullptr;
  double t = norm_tolerance(dtype);
  run("batch_norm", attrs, {&x, pw, pb, tracked ? &rm : nullptr, tracked ? &rv : nullptr}, {&y, &mean, &invstd});
  check_close(y, ey, t, "batch_norm");
  check_close(mean, em, t, "batch_norm mean");
  check_close(invstd, is, t, "batch_norm invstd");
  if (tracked) check_close(rm, new_mean, t, "running_mean"), check_close(rv, new_var, t, "running_var");
  run("batch_norm_grad", attrs, {&dy, &x, pw, &mean, &invstd}, {&dx, &dweight, &dbias});
  check_close(dx, edx, t, "batch_norm_grad dx");
  check_close(dweight, sdx, t * 5, "batch_norm_grad dweight");
  check_close(dbias, sd, t * 5, "batch_norm_grad dbias");
}

void check_layer_norm(uint32_t dtype, Dims lead, Dims inner, Layout layout, bool affine) {
  Dims shape = lead;
  shape.insert(shape.end(), inner.begin(), inner.end());
  Tensor x(dtype, shape, layout), dy(dtype, shape, layout), y(dtype, shape), dx(dtype, shape),
      mean(statistics(dtype), lead);
  Tensor invstd = mean, weight(dtype, inner, Layout::kReversed), bias(dtype, inner);
  Tensor dweight(affine ? dtype : statistics(dtype), inner), dbias = dweight;
  x.random(1, 3), dy.random(), weight.random(), bias.random();
  int64_t size = weight.size(), rows = mean.size();
  double eps = 1e-3, n = static_cast<double>(size);
  std::vector<double> em, ei, ey, edx, edw(at(size)), edb(at(size));
  for (int64_t r = 0; r < rows; r++) {
    double m = 0, v = 0, first = 0, second = 0;
    for (int64_t i = 0; i < size; i++) m += x.get(r * size + i) / n;
    for (int64_t i = 0; i < size; i++) v += std::pow(x.get(r * size + i) - m, 2) / n;
    double s = 1 / std::sqrt(v + eps);
    auto w = [&](int64_t i) { return affine ? weight.get(i) : 1; };
    auto xh = [&](int64_t i) { return (x.get(r * size + i) - m) * s; };
    for (int64_t i = 0; i < size; i++) {
      double d = dy.get(r * size + i);
      ey.push_back(xh(i) * w(i) + (affine ? bias.get(i) : 0));
      first += d * w(i) / n, second += d * w(i) * xh(i) / n, edw[at(i)] += d * xh(i), edb[at(i)] += d;
    }
    for (int64_t i = 0; i < size; i++) edx.push_back(s * (dy.get(r * size + i) * w(i) - first - xh(i) * second));
    em.push_back(m), ei.push_back(s);
  }
  std::vector<Attr> attrs = {Attr::integer("dims", static_cast<int64_t>(inner.size())), {"eps", eps}};
  Tensor *pw = affine ? &weight : nullptr, *pb = affine ? &bias : nullptr;
  double t = norm_tolerance(dtype);
  run("layer_norm", attrs, {&x, pw, pb}, {&y, &mean, &invstd});
  check_close(y, ey, t, "layer_norm"), check_close(mean, em, t, "mean"), check_close(invstd, ei, t, "invstd");
  run("layer_norm_grad", attrs, {&dy, &x, pw, &mean, &invstd}, {&dx, &dweight, &dbias});
  check_close(dx, edx, t, "layer_norm_grad dx");
  check_close(dweight, edw, t * 5, "layer_norm_grad dweight"), check_close(dbias, edb, t * 5, "layer_norm_grad dbias");
}

}  // namespace

TEST_CASE("batch_norm: training and evaluation, long and short planes") {
  for (uint32_t dtype : {PG_F32, PG_F64, PG_BF16, PG_F16}) {
    for (bool training : {true, false}) {
      check_batch_norm(dtype, {6, 5}, Layout::kDense, training, true, true);
      check_batch_norm(dtype, {30, 300}, Layout::kReversed, training, true, true);
      check_batch_norm(dtype, {4, 70, 3}, Layout::kStepped, training, false, true);
      check_batch_norm(dtype, {3, 7, 9, 8}, Layout::kChannelsLast, training, true, true);
      check_batch_norm(dtype, {2, 3, 20, 21}, Layout::kDense, training, true, true);
      check_batch_norm(dtype, {3, 0, 4}, Layout::kDense, training, true, true);
    }
    check_batch_norm(dtype, {5, 4, 6, 6}, Layout::kDense, true, true, false);
  }
}

TEST_CASE("batch_norm: the variance of data far from zero") {
  Tensor x(PG_F32, {64, 2}), y(PG_F32, {64, 2}), mean(PG_F32, {2}), invstd(PG_F32, {2});
  for (int64_t i = 0; i < 128; i++) x.set(i, 10000 + (i / 2 % 2 == 0 ? 1 : -1));
  run("batch_norm", {Attr::flag("training", true), {"momentum", 0.1}, {"eps", 0.0}},
      {&x, nullptr, nullptr, nullptr, nullptr}, {&y, &mean, &invstd});
  CHECK(invstd.get(0) == Approx(1));
  CHECK(y.get(0) == Approx(1));
}

TEST_CASE("layer_norm and its gradient") {
  for (uint32_t dtype : {PG_F32, PG_F64, PG_BF16, PG_F16}) {
    for (bool affine : {true, false}) {
      check_layer_norm(dtype, {3, 4}, {37}, Layout::kDense, affine);
      check_layer_norm(dtype, {50}, {4, 6}, Layout::kReversed, affine);
      check_layer_norm(dtype, {}, {40}, Layout::kStepped, affine);
      check_layer_norm(dtype, {0}, {5}, Layout::kDense, affine);
      check_layer_norm(dtype, {7}, {384}, Layout::kDense, affine);
    }
  }
}
