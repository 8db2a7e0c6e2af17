// SPDX-License-Identifier: Apache-2.0
// Convolution, pooling, normalisation, losses and optimizers.
#include <cmath>
#include <numeric>

#include "harness.hpp"

using namespace test;

namespace {

std::vector<Attr> conv_attrs(int64_t stride, int64_t padding, int64_t groups) {
  return {list("stride", {stride, stride}), list("padding", {padding, padding}), list("dilation", {1, 1}),
          integer("groups", groups)};
}

std::vector<Attr> pool_attrs(int64_t kernel, int64_t padding, bool count_padding = true) {
  return {list("kernel", {kernel, kernel}), list("stride", {}), list("padding", {padding, padding}),
          flag("ceil_mode", false), flag("count_include_pad", count_padding)};
}

Values count_up(size_t n) {
  Values out(n);
  std::iota(out.begin(), out.end(), 1.0);
  return out;
}

double dot(const Values& a, const Values& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

}  // namespace

TEST_CASE("Convolution and its gradients agree: <dy, conv(x, w)> is linear in each") {
  Sim sim;
  for (int64_t groups : {1, 2}) {
    for (int64_t stride : {1, 2}) {
      for (int64_t padding : {0, 1}) {
        int64_t size = (5 + 2 * padding - 3) / stride + 1;
        Tensor x = {PG_F64, {2, 2, 5, 5}, count_up(100)}, w = {PG_F64, {4, 2 / groups, 3, 3}, {}};
        for (int64_t i = 0; i < 4 * 2 / groups * 9; i++) w.values.push_back(std::sin(static_cast<double>(i)));
        Tensor dy = {PG_F64, {2, 4, size, size}, {}};
        for (int64_t i = 0; i < 8 * size * size; i++) dy.values.push_back(std::cos(static_cast<double>(i)));
        auto attrs = conv_attrs(stride, padding, groups);
        Tensor y = sim.run({"conv2d", {{x}, {w}, {}}, attrs, {out(PG_F64, dy.shape)}})[0];
        Operation grad = {"conv2d_grad_input", {{dy}, {w}, {x}}, attrs, {out(PG_F64, x.shape)}};
        grad.meta_input = 2;
        Tensor dx = sim.run(grad)[0];
        grad = {"conv2d_grad_weight", {{dy}, {x}, {w}}, attrs, {out(PG_F64, w.shape)}};
        grad.meta_input = 2;
        Tensor dw = sim.run(grad)[0];
        CHECK(dot(dx.values, x.values) == Approx(dot(dy.values, y.values)));
        CHECK(dot(dw.values, w.values) == Approx(dot(dy.values, y.values)));
      }
    }
  }
}

TEST_CASE("A convolution by hand") {
  Sim sim;
  Tensor x = f32({1, 1, 3, 3}, count_up(9)), w = f32({1, 1, 2, 2}, {1, 0, 0, 1}), bias = f32({1}, {0.5});
  check(sim.run({"conv2d", {{x}, {w}, {bias}}, conv_attrs(1, 0, 1), {out(PG_F32, {1, 1, 2, 2})}})[0],
        {6.5, 8.5, 12.5, 14.5});
  check(sim.run({"conv2d", {{x}, {w}, {}}, conv_attrs(2, 1, 1), {out(PG_F32, {1, 1, 2, 2})}})[0], {1, 3, 7, 14});
}

TEST_CASE("Pooling") {
  Sim sim;
  Tensor x = f32({1, 1, 4, 4}, {1, 2, 5, 3, 4, 0, 1, 1, 7, 7, 0, 0, 7, 7, 0, NAN});
  auto max = sim.run({"max_pool2d", {{x}}, pool_attrs(2, 0), {out(PG_F32, {1, 1, 2, 2}), out(PG_I64, {1, 1, 2, 2})}});
  check(max[0], {4, 5, 7, NAN});
  check(max[1], {4, 2, 8, 15});  // the first of equals
  Operation grad = {
      "max_pool2d_grad", {{f32({1, 1, 2, 2}, {1, 2, 3, 4})}, {max[1]}, {x}}, {}, {out(PG_F32, {1, 1, 4, 4})}};
  grad.meta_input = 2;
  check(sim.run(grad)[0], {0, 0, 2, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 4});
  check(sim.run({"max_pool2d_gather", {{x}, {max[1]}}, {}, {out(PG_F32, {1, 1, 2, 2})}})[0], {4, 5, 7, NAN});
  grad.inputs[1][0].values[2] = 16;
  CHECK_THAT(sim.try_run(grad).message(), Catch::Contains("index 16 is out of range for a plane of 16 elements"));

  Tensor small = f32({1, 1, 2, 2}, {4, 8, 12, 16});
  check(sim.run({"avg_pool2d", {{small}}, pool_attrs(2, 1), {out(PG_F32, {1, 1, 2, 2})}})[0], {1, 2, 3, 4});
  check(sim.run({"avg_pool2d", {{small}}, pool_attrs(2, 1, false), {out(PG_F32, {1, 1, 2, 2})}})[0], {4, 8, 12, 16});
  grad = {"avg_pool2d_grad", {{f32({1, 1, 1, 1}, {8})}, {small}}, pool_attrs(2, 0), {out(PG_F32, {1, 1, 2, 2})}};
  grad.meta_input = 1;
  check(sim.run(grad)[0], {2, 2, 2, 2});
}

TEST_CASE("Batch normalisation: statistics, running statistics, gradient") {
  Sim sim;
  Tensor x = f32({2, 2, 1}, {1, 10, 3, 30}), none = {0, {}, {}};
  std::vector<Attr> attrs = {flag("training", true), real("momentum", 0.1), real("eps", 0)};
  Operation call = {"batch_norm",
                    {{x}, {f32({2}, {1, 2})}, {f32({2}, {0, 5})}, {f32({2}, {0, 0})}, {f32({2}, {1, 1})}},
                    attrs,
                    {out(PG_F32, {2, 2, 1}), out(PG_F32, {2}), out(PG_F32, {2})}};
  auto results = sim.run(call);
  check(results[0], {-1, 3, 1, 7});
  check(results[1], {2, 20});
  check(results[2], {1, 0.1});
  call.writes_inputs = true;
  auto inputs = sim.run(call);
  check(inputs[3], {0.2, 2});
  check(inputs[4], {0.9 + 0.1 * 2, 0.9 + 0.1 * 200});  // unbiased
  call.writes_inputs = false;
  call.attrs[0] = flag("training", false);
  check(sim.run(call)[0], {1, 25, 3, 65});

  Operation grad = {"batch_norm_grad",
                    {{f32({2, 2, 1}, {1, 1, 0, 0})}, {x}, {none}, {results[1]}, {results[2]}},
                    {flag("training", true)},
                    {out(PG_F32, {2, 2, 1}), out(PG_F32, {2}), out(PG_F32, {2})}};
  auto slopes = sim.run(grad);
  check(slopes[0], {0, 0, 0, 0});  // two elements: normalised to -1 and 1 whatever they are
  check(slopes[1], {-1, -1});
  check(slopes[2], {1, 1});
  grad.attrs[0] = flag("training", false);
  check(sim.run(grad)[0], {1, 0.1, 0, 0});
}

TEST_CASE("Layer normalisation") {
  Sim sim;
  Tensor x = f32({2, 2}, {1, 3, 10, 30});
  auto results = sim.run({"layer_norm",
                          {{x}, {}, {f32({2}, {0, 1})}},
                          {integer("dims", 1), real("eps", 0)},
                          {out(PG_F32, {2, 2}), out(PG_F32, {2}), out(PG_F32, {2})}});
  check(results[0], {-1, 2, -1, 2});
  check(results[2], {1, 0.1});
}

TEST_CASE("Softmax and the cross entropy") {
  Sim sim;
  Tensor x = f32({2, 2}, {0, std::log(3.0), 1000, 1000});
  check(sim.run({"softmax", {{x}}, {axis("axis", -1)}, {out(PG_F32, {2, 2})}})[0], {0.25, 0.75, 0.5, 0.5});
  check(sim.run({"log_softmax", {{x}}, {axis("axis", 1)}, {out(PG_F32, {2, 2})}})[0],
        {std::log(0.25), std::log(0.75), std::log(0.5), std::log(0.5)});

  auto attrs = [](int reduction, double smoothing) {
    return std::vector<Attr>{integer("ignore_index", -100), choice("reduction", {"mean", "sum", "none"}, reduction),
                             real("label_smoothing", smoothing)};
  };
  Operation loss = {
      "cross_entropy", {{x}, {i64({2}, {1, 0})}, {}}, attrs(0, 0), {out(PG_F32, {}), out(PG_F32, {2, 2})}};
  auto results = sim.run(loss);
  check(results[0], {-(std::log(0.75) + std::log(0.5)) / 2});
  Operation grad = {
      "cross_entropy_grad", {{f32({}, {1})}, {results[1]}, {i64({2}, {1, 0})}, {}}, attrs(0, 0), {out(PG_F32, {2, 2})}};
  check(sim.run(grad)[0], {0.125, -0.125, -0.25, 0.25});

  loss.attrs = attrs(1, 0.2);
  check(sim.run(loss)[0], {-(0.9 * std::log(0.75) + 0.1 * std::log(0.25) + std::log(0.5))});
  loss.inputs[1][0].values = {1, -100};
  loss.attrs = attrs(0, 0);
  check(sim.run(loss)[0], {-std::log(0.75)});
  loss.inputs[1][0].values = {1, 2};
  CHECK_THAT(sim.try_run(loss).message(), Catch::Contains("target 2 at position [2] is out of range; expected 0 to 1"));
}

TEST_CASE("Adam and SGD") {
  Sim sim;
  std::vector<Attr> attrs = {real("lr", 0.1),       real("beta1", 0.9),       real("beta2", 0.99),
                             real("eps", 0),        real("weight_decay", 0),  real("step", 1),
                             real("grad_scale", 2), flag("decoupled", false), flag("maximize", false)};
  Operation adam = {"adam",
                    {{f32({2}, {1, 2}), f32({1}, {3})},
                     {f32({2}, {4, -4}), f32({1}, {2})},
                     {f32({2}, {0, 0}), f32({1}, {0})},
                     {f32({2}, {0, 0}), f32({1}, {0})},
                     {},
                     {}},
                    attrs,
                    {}};
  adam.writes_inputs = true;
  auto results = sim.run(adam);
  check(results[0], {0.9, 2.1});  // the first step is lr times the sign
  check(results[1], {2.9});
  check(results[4], {0.2, -0.2});
  check(results[6], {0.04, 0.04});

  Operation sgd = {"sgd",
                   {{f32({1}, {1})}, {f32({1}, {2})}, {f32({1}, {1})}, {}},
                   {real("lr", 0.1), real("momentum", 0.5), real("dampening", 0), real("weight_decay", 1),
                    real("step", 2), real("grad_scale", 1), flag("nesterov", false), flag("maximize", false)},
                   {}};
  sgd.writes_inputs = true;
  results = sim.run(sgd);
  check(results[0], {1 - 0.1 * 3.5});
  check(results[2], {3.5});
  sgd.inputs[2] = {};
  check(sim.run(sgd)[0], {1 - 0.1 * 3});
}
