// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <set>

#include "fake_host.hpp"

using fake::Attrs;
using fake::infer;
using fake::kBatch;
using fake::Result;
using fake::Tensor;
using Sizes = std::vector<int64_t>;

TEST_CASE("schemas are whole") {
  std::set<std::string> names;
  for (uint32_t i = 0; i < fake::table().count; i++) {
    const pg_op_info& op = *fake::table().ops[i];
    INFO(op.name);
    CHECK(names.insert(op.name).second);
    CHECK(op.static_size <= op.attr_size);
    for (uint32_t k = 0; k < op.attr_count; k++) {
      const pg_attr_info& a = *op.attrs[k];
      CHECK(a.offset % 8 == 0);
      CHECK(((a.flags & PG_ATTR_RUNTIME) != 0) == (a.offset >= op.static_size));
    }
    if ((op.traits & PG_OP_NO_GRAD) == 0) CHECK(op.grad != nullptr);
  }
  CHECK(names.size() > 100);
}

TEST_CASE("broadcasting, with and without symbols") {
  CHECK(infer(Attrs("add"), {{PG_F32, {3, 1}}, {PG_F32, {4}}}).shape() == Sizes{3, 4});
  CHECK(infer(Attrs("add"), {{PG_F32, {kBatch, 1}}, {PG_F32, {4}}}).shape() == Sizes{kBatch, 4});
  CHECK(infer(Attrs("add"), {{PG_F32, {kBatch}}, {PG_F32, {5}}}).shape() == Sizes{5});
  CHECK(infer(Attrs("lt"), {{PG_F32, {0, 2}}, {PG_F32, {}}}).dtype() == PG_B8);
  Result bad = infer(Attrs("add"), {{PG_F32, {2, 3}}, {PG_F32, {4, 3}}});
  CHECK(bad.code == PG_E_INVALID_ARGUMENT);
  CHECK(bad.message == "shapes [2, 3] and [4, 3] do not broadcast: axis -2 is 2 and 4");
}

TEST_CASE("errors name argument, got and expected") {
  CHECK(infer(Attrs("softmax").number("axis", 2), {{PG_F32, {64, 10}}}).message ==
        "axis 3 is out of range for x [64, 10]; expected 1..2 or -2..-1");
  CHECK(infer(Attrs("sub"), {{PG_B8, {2}}, {PG_B8, {2}}}).message ==
        "x is bool; expected integer or floating or complex");
  CHECK(infer(Attrs("fill").list("shape", {2, -3}), {}).message == "the size -3 of axis 2 is negative");
  CHECK(infer(Attrs("fill").list("shape", {INT64_MAX, 4}), {}).code == PG_E_INVALID_ARGUMENT);
  CHECK(infer(Attrs("add"), {{PG_F32, {2}}, {PG_F32, {}, {}, true}}).message == "y is missing");
  CHECK(infer(Attrs("amax"), {{PG_F32, {2, 0}}}).code == PG_E_INVALID_ARGUMENT);
}

TEST_CASE("reductions") {
  CHECK(infer(Attrs("sum").list("axes", {-1}), {{PG_I32, {2, 3}}}).shape() == Sizes{2});
  CHECK(infer(Attrs("sum"), {{PG_I32, {2, 3}}}).dtype() == PG_I64);
  CHECK(infer(Attrs("mean").number("keepdim", 1), {{PG_F32, {kBatch, 3}}}).shape() == Sizes{1, 1});
  CHECK(infer(Attrs("sum").list("axes", {0}), {{PG_F32, {}}}).code == PG_OK);
  CHECK(infer(Attrs("argmax").number("flat", 0).number("axis", 1), {{PG_F32, {2, 3}}}).shape() == Sizes{2});
}

TEST_CASE("views") {
  Result part = infer(Attrs("slice").list("starts", {1, 0}).list("stops", {INT64_MAX, -1}).list("steps", {1, 2}),
                      {{PG_F32, {3, 6}}});
  CHECK(part.shape() == Sizes{2, 3});
  CHECK(part.stride() == Sizes{6, 2});
  CHECK(part.outputs[0].offset == 6);
  Result row = infer(Attrs("slice").list("starts", {-1}).list("stops", {0}).list("drop", {1}), {{PG_F32, {3, 6}}});
  CHECK(row.shape() == Sizes{6});
  CHECK(row.outputs[0].offset == 12);
  CHECK(infer(Attrs("slice").list("starts", {3}).list("drop", {1}), {{PG_F32, {3}}}).message ==
        "position 4 is out of range for axis 1 of x [3]; expected 1..3 or -3..-1");
  CHECK(infer(Attrs("slice").list("starts", {0}), {{PG_F32, {kBatch, 3}}}).shape() == Sizes{kBatch, 3});

  CHECK(infer(Attrs("reshape").list("shape", {-1, 2}), {{PG_F32, {3, 4}}}).stride() == Sizes{2, 1});
  Result turned = infer(Attrs("reshape").list("shape", {-1}), {{PG_F32, {3, 4}, {1, 3}}});
  CHECK(turned.outputs[0].flags == PG_META_COPY);
  Result partly = infer(Attrs("reshape").list("shape", {2, 2, 3}), {{PG_F32, {4, 3}, {6, 2}}});
  CHECK(partly.stride() == Sizes{12, 6, 2});
  CHECK(infer(Attrs("reshape").list("shape", {5}), {{PG_F32, {3, 4}}}).message ==
        "x [3, 4] has 12 elements and cannot become [5]");
  CHECK(infer(Attrs("expand").list("shape", {4, -1}), {{PG_F32, {3}}}).stride() == Sizes{0, 1});
  CHECK(infer(Attrs("permute").list("axes", {1, 0}), {{PG_F32, {3, 4}}}).stride() == Sizes{1, 4});
  CHECK(infer(Attrs("permute").list("axes", {1, 1}), {{PG_F32, {3, 4}}}).message == "axis 2 is listed twice in axes");
  CHECK(infer(Attrs("squeeze"), {{PG_F32, {1, 4, 1}}}).shape() == Sizes{4});
  CHECK(infer(Attrs("unsqueeze").number("axis", 1), {{PG_F32, {4}}}).shape() == Sizes{4, 1});
}

TEST_CASE("matrices and neural operators") {
  CHECK(infer(Attrs("matmul"), {{PG_F32, {kBatch, 2, 3}}, {PG_F32, {3, 5}}}).shape() == Sizes{kBatch, 2, 5});
  CHECK(infer(Attrs("matmul").number("transpose_y", 1), {{PG_F32, {3}}, {PG_F32, {7, 5, 3}}}).shape() == Sizes{7, 5});
  CHECK(infer(Attrs("matmul"), {{PG_F32, {2, 3}}, {PG_F32, {4, 5}}}).code == PG_E_INVALID_ARGUMENT);
  Tensor none{PG_F32, {}, {}, true};
  CHECK(infer(Attrs("conv2d").list("padding", {1, 1}), {{PG_F32, {kBatch, 3, 8, 8}}, {PG_F32, {4, 3, 3, 3}}, none})
            .shape() == Sizes{kBatch, 4, 8, 8});
  CHECK(infer(Attrs("conv2d"), {{PG_F32, {1, 3, 2, 8}}, {PG_F32, {4, 3, 3, 3}}, none}).code == PG_E_INVALID_ARGUMENT);
  Result pool = infer(Attrs("max_pool2d").list("kernel", {2, 2}), {{PG_F32, {2, 3, 7, 8}}});
  CHECK(pool.shape() == Sizes{2, 3, 3, 4});
  CHECK(pool.dtype(1) == PG_I64);
  CHECK(infer(Attrs("max_pool2d").list("kernel", {2, 2}).number("ceil_mode", 1), {{PG_F32, {2, 3, 7, 8}}}).shape() ==
        Sizes{2, 3, 4, 4});
  CHECK(infer(Attrs("batch_norm").number("training", 1), {{PG_BF16, {4, 3}}, none, none, none, none}).dtype(1) ==
        PG_F32);
  CHECK(infer(Attrs("batch_norm"), {{PG_F32, {4, 3}}, none, none, none, none}).code == PG_E_INVALID_ARGUMENT);
  CHECK(infer(Attrs("cross_entropy"), {{PG_F32, {4, 3}}, {PG_I64, {4}}, none}).shape() == Sizes{});
  CHECK(infer(Attrs("cross_entropy"), {{PG_F32, {4, 3}}, {PG_I64, {5}}, none}).code == PG_E_INVALID_ARGUMENT);
  CHECK(infer(Attrs("embedding"), {{PG_F32, {10, 4}}, {PG_I64, {2, 3}}}).shape() == Sizes{2, 3, 4});
  CHECK(infer(Attrs("nonzero"), {{PG_F32, {2, 3}}}).shape() == Sizes{6, 2});
  CHECK(infer(Attrs("cat").number("axis", -1), {{PG_F32, {2, 3}}, {PG_F32, {2, kBatch}}}, {2}).code == PG_OK);
  CHECK(infer(Attrs("cat"), {{PG_F32, {2, 3}}, {PG_F32, {5, 3}}}, {2}).shape() == Sizes{7, 3});
  CHECK(infer(Attrs("adam"), {{PG_F32, {2}}, {PG_F32, {3}}, {PG_F32, {2}}, {PG_F32, {2}}, none}, {1, 1, 1, 1, 0, 1})
            .message == "grads[1] [3] does not have the shape of its parameter, [2]");
}
