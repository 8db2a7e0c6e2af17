// SPDX-License-Identifier: Apache-2.0
// Elementwise, reduction, matrix and creation kernels.
#include <cmath>

#include "harness.hpp"

using namespace test;

namespace {

const double kNan = NAN, kInf = INFINITY;

Tensor one(Sim& sim, Operation operation) { return sim.run(operation)[0]; }

}  // namespace

TEST_CASE("Elementwise operators broadcast and keep their dtype") {
  Sim sim;
  Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6}), row = f32({3}, {10, 20, 30}), column = f32({2, 1}, {1, -1});
  check(one(sim, {"add", {{x}, {row}}, {}, {out(PG_F32, {2, 3})}}), {11, 22, 33, 14, 25, 36});
  check(one(sim, {"mul", {{column}, {row}}, {}, {out(PG_F32, {2, 3})}}), {10, 20, 30, -10, -20, -30});
  check(one(sim, {"lt", {{x}, {f32({}, {3.5})}}, {}, {out(PG_B8, {2, 3})}}), {1, 1, 1, 0, 0, 0});
  Tensor byte = {PG_U8, {2}, {250, 3}};
  check(one(sim, {"add", {{byte}, {byte}}, {}, {out(PG_U8, {2})}}), {244, 6});  // wraps around
  Tensor truth = {PG_B8, {2}, {1, 0}};
  check(one(sim, {"add", {{truth}, {truth}}, {}, {out(PG_B8, {2})}}), {1, 0});
  Tensor half = {PG_F16, {2}, {1.5, 1000}};
  check(one(sim, {"mul", {{half}, {half}}, {}, {out(PG_F16, {2})}}), {2.25, kInf});
  check(one(sim, {"maximum", {{f32({2}, {kNan, 1})}, {f32({2}, {1, 2})}}, {}, {out(PG_F32, {2})}}), {kNan, 2});
}

TEST_CASE("Integers divide by no zero") {
  Sim sim;
  Operation call = {"floor_div", {{i64({2}, {-7, 7})}, {i64({2}, {2, 2})}}, {}, {out(PG_I64, {2})}};
  check(one(sim, call), {-4, 3});
  call.op = "remainder";
  check(one(sim, call), {1, 1});
  call.inputs[1][0].values = {2, 0};
  CHECK_THAT(sim.try_run(call).message(), Catch::Contains("division by zero"));
}

TEST_CASE("Unary operators, clamp, where and masked_fill") {
  Sim sim;
  Tensor x = f32({3}, {-1, 0, 2});
  check(one(sim, {"exp", {{x}}, {}, {out(PG_F32, {3})}}), {std::exp(-1.0), 1, std::exp(2.0)});
  check(one(sim, {"relu", {{x}}, {}, {out(PG_F32, {3})}}), {0, 0, 2});
  check(one(sim, {"gelu", {{x}}, {choice("approximate", {"none", "tanh"}, 0)}, {out(PG_F32, {3})}}),
        {-0.15865525, 0, 1.9544997});
  check(one(sim, {"clamp", {{x}}, {real("min", -0.5), real("max", kInf)}, {out(PG_F32, {3})}}), {-0.5, 0, 2});
  check(one(sim, {"floor", {{i64({1}, {-7})}}, {}, {out(PG_I64, {1})}}), {-7});
  Tensor mask = {PG_B8, {3}, {1, 0, 1}};
  check(one(sim, {"where", {{mask}, {x}, {f32({}, {9})}}, {}, {out(PG_F32, {3})}}), {-1, 9, 2});
  check(one(sim, {"masked_fill", {{x}, {mask}}, {real("value", 7)}, {out(PG_F32, {3})}}), {7, 0, 7});
}

TEST_CASE("Empty and 0-dimensional tensors go through") {
  Sim sim;
  CHECK(one(sim, {"exp", {{f32({0, 3}, {})}}, {}, {out(PG_F32, {0, 3})}}).values.empty());
  check(one(sim, {"exp", {{f32({}, {0})}}, {}, {out(PG_F32, {})}}), {1});
  std::vector<Attr> all = {list("axes", {}), flag("keepdim", false)};
  check(one(sim, {"sum", {{f32({0}, {})}}, all, {out(PG_F32, {})}}), {0});
  check(one(sim, {"prod", {{f32({0}, {})}}, all, {out(PG_F32, {})}}), {1});
  check(one(sim, {"mean", {{f32({0}, {})}}, all, {out(PG_F32, {})}}), {kNan});
}

TEST_CASE("Reductions") {
  Sim sim;
  Tensor x = f32({2, 3}, {1, 5, 3, 4, 2, 6});
  auto along = [](Shape axes) { return std::vector<Attr>{list("axes", axes), flag("keepdim", false)}; };
  check(one(sim, {"sum", {{x}}, along({1}), {out(PG_F32, {2})}}), {9, 12});
  check(one(sim, {"sum", {{x}}, along({-2}), {out(PG_F32, {3})}}), {5, 7, 9});
  check(one(sim, {"mean", {{x}}, along({}), {out(PG_F32, {})}}), {3.5});
  check(one(sim, {"amax", {{x}}, along({0}), {out(PG_F32, {3})}}), {4, 5, 6});
  check(one(sim, {"amin", {{f32({2}, {1, kNan})}}, along({}), {out(PG_F32, {})}}), {kNan});
  check(one(sim, {"logsumexp", {{f32({2}, {1000, 1000})}}, along({}), {out(PG_F32, {})}}), {1000 + std::log(2.0)});
  check(one(sim, {"any", {{x}}, along({1}), {out(PG_B8, {2})}}), {1, 1});
  check(one(sim, {"sum", {{{PG_B8, {3}, {1, 1, 0}}}}, along({}), {out(PG_I64, {})}}), {2});
  Operation variance = {"var", {{x}}, {list("axes", {1}), integer("correction", 1)}, {out(PG_F32, {2})}};
  check(one(sim, variance), {4, 4});
  variance.op = "std";
  check(one(sim, variance), {2, 2});
  check(one(sim, {"argmax", {{x}}, {axis("axis", 1), flag("flat", false)}, {out(PG_I64, {2})}}), {1, 2});
  check(one(sim, {"argmin", {{x}}, {axis("axis", 0), flag("flat", true)}, {out(PG_I64, {})}}), {0});
  check(one(sim, {"cumsum", {{x}}, {axis("axis", 1)}, {out(PG_F32, {2, 3})}}), {1, 6, 9, 4, 6, 12});
  check(one(sim, {"cumprod", {{x}}, {axis("axis", 0)}, {out(PG_F32, {2, 3})}}), {1, 5, 3, 4, 10, 18});
  Operation like = {"sum_like", {{x}, {f32({2, 1}, {})}}, {}, {out(PG_F32, {2, 1})}};
  like.meta_input = 1;
  check(one(sim, like), {9, 12});
  check(one(sim, {"all_finite", {{x, f32({1}, {kInf})}}, {}, {out(PG_B8, {})}}), {0});
  check(one(sim, {"all_finite", {{x, x}}, {}, {out(PG_B8, {})}}), {1});
}

TEST_CASE("Matrix products") {
  Sim sim;
  auto plain = [](bool x, bool y) { return std::vector<Attr>{flag("transpose_x", x), flag("transpose_y", y)}; };
  Tensor a = f32({2, 3}, {1, 2, 3, 4, 5, 6}), b = f32({3, 2}, {1, 0, 0, 1, 1, 1}), v = f32({3}, {1, 1, 1});
  check(one(sim, {"matmul", {{a}, {b}}, plain(false, false), {out(PG_F32, {2, 2})}}), {4, 5, 10, 11});
  check(one(sim, {"matmul", {{a}, {a}}, plain(false, true), {out(PG_F32, {2, 2})}}), {14, 32, 32, 77});
  check(one(sim, {"matmul", {{a}, {v}}, plain(false, false), {out(PG_F32, {2})}}), {6, 15});
  check(one(sim, {"matmul", {{v}, {b}}, plain(false, false), {out(PG_F32, {2})}}), {2, 2});
  check(one(sim, {"matmul", {{v}, {v}}, plain(false, false), {out(PG_F32, {})}}), {3});
  Tensor batch = f32({2, 1, 3}, {1, 0, 0, 0, 0, 1});
  check(one(sim, {"matmul", {{batch}, {b}}, plain(false, false), {out(PG_F32, {2, 1, 2})}}), {1, 0, 1, 1});
  check(one(sim, {"matmul", {{f32({2, 0}, {})}, {f32({0, 2}, {})}}, plain(false, false), {out(PG_F32, {2, 2})}}),
        {0, 0, 0, 0});
  Operation dense = {"linear", {{a}, {f32({1, 3}, {1, 2, 3})}, {f32({1}, {0.5})}}, {}, {out(PG_F32, {2, 1})}};
  check(one(sim, dense), {14.5, 32.5});
  dense.inputs[2] = {};
  check(one(sim, dense), {14, 32});
}

TEST_CASE("Creation and reductions across tensors") {
  Sim sim;
  check(one(sim, {"fill", {}, {real("value", 2.5)}, {out(PG_BF16, {2})}}), {2.5, 2.5});
  check(one(sim, {"fill", {}, {real("value", 0.5)}, {out(PG_B8, {1})}}), {1});
  check(one(sim, {"arange", {}, {real("start", 2), real("step", -0.5)}, {out(PG_F32, {3})}}), {2, 1.5, 1});
  Tensor a = f32({2}, {1, 8}), b = f32({2}, {3, 4});
  auto reduce = [&](int op) {
    return sim.run({"all_reduce",
                    {{a, b}},
                    {choice("op", {"sum", "mean", "max", "min"}, op)},
                    {out(PG_F32, {2}), out(PG_F32, {2})}})[1];
  };
  check(reduce(0), {4, 12});
  check(reduce(1), {2, 6});
  check(reduce(2), {3, 8});
  check(reduce(3), {1, 4});
}
