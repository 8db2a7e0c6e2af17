// SPDX-License-Identifier: Apache-2.0
// Kernels that read and write by index, and outputs whose size only the kernel knows.
#include "harness.hpp"

using namespace test;

TEST_CASE("Embedding and its gradient") {
  Sim sim;
  Tensor table = f32({3, 2}, {1, 2, 3, 4, 5, 6}), index = i64({2, 2}, {2, 0, 2, 1});
  check(sim.run({"embedding", {{table}, {index}}, {}, {out(PG_F32, {2, 2, 2})}})[0], {5, 6, 1, 2, 5, 6, 3, 4});
  Operation grad = {"embedding_grad",
                    {{f32({2, 2, 2}, {1, 1, 2, 2, 4, 4, 8, 8})}, {index}, {table}},
                    {integer("padding_idx", 1)},
                    {out(PG_F32, {3, 2})}};
  grad.meta_input = 2;
  check(sim.run(grad)[0], {2, 2, 0, 0, 5, 5});
}

TEST_CASE("index_select and gather along an axis, with gradients") {
  Sim sim;
  Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  check(sim.run({"index_select",
                 {{x}, {i64({2}, {2, 0})}},
                 {axis("axis", 1), integer("shown", 0)},
                 {out(PG_F32, {2, 2})}})[0],
        {3, 1, 6, 4});
  Operation grad = {"index_select_grad",
                    {{f32({2, 2}, {1, 2, 3, 4})}, {i64({2}, {2, 2})}, {x}},
                    {axis("axis", 1)},
                    {out(PG_F32, {2, 3})}};
  grad.meta_input = 2;
  check(sim.run(grad)[0], {0, 0, 3, 0, 0, 7});
  Tensor index = i64({1, 3}, {1, 0, 1});
  check(sim.run({"gather", {{x}, {index}}, {axis("axis", 0)}, {out(PG_F32, {1, 3})}})[0], {4, 2, 6});
  grad = {"gather_grad", {{f32({1, 3}, {7, 8, 9})}, {index}, {x}}, {axis("axis", 0)}, {out(PG_F32, {2, 3})}};
  grad.meta_input = 2;
  check(sim.run(grad)[0], {0, 8, 0, 7, 0, 9});
  CHECK_THAT(
      sim.try_run({"gather", {{x}, {i64({1, 3}, {1, 0, -1})}}, {axis("axis", 0)}, {out(PG_F32, {1, 3})}}).message(),
      Catch::Contains("index -1 at position [1, 3]"));
}

TEST_CASE("Dynamic outputs publish how large they are") {
  Sim sim;
  Operation nonzero = {"nonzero", {{f32({2, 2}, {0, 3, 4, 0})}}, {}, {out(PG_I64, {4, 2})}, true};
  Tensor found = sim.run(nonzero)[0];
  CHECK(found.shape == Shape{2, 2});
  check(found, {0, 1, 1, 0});
  nonzero.inputs[0][0].values = {0, 0, 0, 0};
  CHECK(sim.run(nonzero)[0].shape == Shape{0, 2});
  Operation select = {
      "masked_select", {{f32({2, 2}, {1, 2, 3, 4})}, {{PG_B8, {2}, {0, 1}}}}, {}, {out(PG_F32, {4})}, true};
  found = sim.run(select)[0];
  CHECK(found.shape == Shape{2});
  check(found, {2, 4});
  Operation grad = {
      "masked_select_grad", {{f32({2}, {5, 6})}, {{PG_B8, {2}, {0, 1}}}, {f32({2, 2}, {})}}, {}, {out(PG_F32, {2, 2})}};
  grad.meta_input = 2;
  check(sim.run(grad)[0], {0, 5, 0, 6});
}

TEST_CASE("one_hot, cat and parts of slices") {
  Sim sim;
  check(sim.run({"one_hot", {{i64({2}, {2, 0})}}, {integer("classes", 3)}, {out(PG_I64, {2, 3})}})[0],
        {0, 0, 1, 1, 0, 0});
  Operation cat = {"cat",
                   {{f32({2, 1}, {1, 2}), f32({2, 0}, {}), f32({2, 2}, {3, 4, 5, 6})}},
                   {axis("axis", 1)},
                   {out(PG_F32, {2, 3})}};
  check(sim.run(cat)[0], {1, 3, 4, 2, 5, 6});
  Operation pieces = {"cat_grad", {{f32({2, 3}, {1, 3, 4, 2, 5, 6})}, cat.inputs[0]}, {axis("axis", 1)}, {}};
  pieces.meta_input = 1;
  pieces.outputs = {out(PG_F32, {2, 1}), out(PG_F32, {2, 0}), out(PG_F32, {2, 2})};
  auto cut = sim.run(pieces);
  check(cut[0], {1, 2});
  check(cut[2], {3, 4, 5, 6});
  std::vector<Attr> part = {list("starts", {1, -3}), list("stops", {2, 9}), list("steps", {1, 2}),
                            list("drop", {1, 0})};
  Operation grad = {"slice_grad", {{f32({2}, {7, 8})}, {f32({2, 3}, {})}}, part, {out(PG_F32, {2, 3})}};
  grad.meta_input = 1;
  check(sim.run(grad)[0], {0, 0, 0, 7, 0, 8});
  check(sim.run(
            {"slice_scatter", {{f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {f32({2}, {7, 8})}}, part, {out(PG_F32, {2, 3})}})[0],
        {1, 2, 3, 7, 5, 8});
}
