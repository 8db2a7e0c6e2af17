// SPDX-License-Identifier: Apache-2.0
// Orders of axes: what a result of elementwise work lies like.
#include "tensor/order.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "tensor/dims.hpp"

using namespace perigee;

namespace {

using Sizes = std::vector<int64_t>;

MetaRef described(const Sizes& shape, const Sizes& stride = {}) {
  return intern_meta(PG_F32, static_cast<uint32_t>(shape.size()), shape.data(),
                     stride.empty() ? nullptr : stride.data());
}

Sizes strides(const Meta& m) { return {m.stride, m.stride + m.rank}; }

Sizes result(const Sizes& shape, const std::vector<MetaRef>& operands) {
  std::vector<const Meta*> raw;
  for (const MetaRef& x : operands) raw.push_back(x.get());
  return strides(*meta_like_operands(described(shape), raw.data(), static_cast<uint32_t>(raw.size())));
}

}  // namespace

TEST_CASE("what fills its memory in some order is dense", "[order]") {
  CHECK(described({2, 3})->dense);
  CHECK(described({2, 3}, {1, 2})->dense);
  CHECK_FALSE(described({2, 3}, {1, 2})->contiguous);
  CHECK(described({2, 3, 4}, {1, 8, 2})->dense);
  CHECK(described({2, 1, 4}, {1, 77, 2})->dense);
  CHECK(described({0, 3}, {9, 9})->dense);
  CHECK(described({1}, {5})->dense);
  CHECK_FALSE(described({2, 3}, {4, 1})->dense);  // gaps
  CHECK_FALSE(described({2, 3}, {0, 1})->dense);  // broadcast
  CHECK_FALSE(described({2, 2}, {1, 1})->dense);  // overlapping
  CHECK_FALSE(described({4, 3}, {1, 3})->dense);  // overlapping, and as long as if it were not
}

TEST_CASE("a result lies as the operands do", "[order]") {
  const MetaRef row = described({2, 3, 4}), turned = described({2, 3, 4}, {1, 2, 6}),
                inner = described({2, 3, 4}, {3, 1, 6}), none;
  CHECK(result({2, 3, 4}, {row}) == Sizes{12, 4, 1});
  CHECK(result({2, 3, 4}, {turned}) == Sizes{1, 2, 6});
  CHECK(result({2, 3, 4}, {none, turned}) == Sizes{1, 2, 6});
  CHECK(result({2, 3, 4}, {row, turned}) == Sizes{12, 4, 1});  // the first that says it
  CHECK(result({2, 3, 4}, {inner, turned}) == Sizes{3, 1, 6});
  CHECK(result({2, 3, 4}, {described({}), inner}) == Sizes{3, 1, 6});
  CHECK(result({2, 3, 4}, {described({4}), turned}) == Sizes{1, 2, 6});
  CHECK(result({2, 3, 4}, {described({3, 4}), turned}) == Sizes{1, 8, 2});  // of two axes only
  CHECK(result({2, 3, 4}, {described({3, 1}), described({2, 1, 4}, {1, 2, 2})}) == Sizes{1, 2, 6});
  CHECK(result({3, 4}, {described({3, 4}, {1, 0}), described({3, 4}, {1, 3})}) == Sizes{1, 3});
  CHECK(result({3, 4}, {described({3, 4}, {1, 6})}) == Sizes{1, 3});  // what has gaps says it too
  CHECK(result({3, 4}, {described({5, 4}, {1, 5}), described({3, 4}, {1, 3})}) == Sizes{1, 3});  // does not broadcast
}

TEST_CASE("strides along single elements are kept where an operand decides", "[order]") {
  CHECK(result({2, 1, 4}, {described({2, 1, 4}, {1, 77, 2})}) == Sizes{1, 77, 2});
  CHECK(keep_order(*described({2, 1, 4}, {1, 77, 2}), PG_F64)->dtype == PG_F64);
  CHECK(strides(*keep_order(*described({2, 1, 4}, {1, 77, 2}), PG_F64)) == Sizes{1, 77, 2});
  MetaRef dense = described({2, 3}, {1, 2});
  CHECK(keep_order(*dense, PG_F32).get() == dense.get());
}

TEST_CASE("memory formats", "[order]") {
  MetaRef image = described({2, 3, 4, 5}), volume = described({2, 3, 4, 5, 6});
  auto lie = [](const Meta& m, MemoryFormat format) {
    return strides(*ordered_meta(PG_F32, m.rank, m.shape, order_of_format(format, m)));
  };
  CHECK(lie(*image, MemoryFormat::channels_last) == Sizes{60, 1, 15, 3});
  CHECK(lie(*image, MemoryFormat::contiguous) == Sizes{60, 20, 5, 1});
  CHECK(lie(*volume, MemoryFormat::channels_last_3d) == Sizes{360, 1, 90, 18, 3});
  CHECK_THROWS_WITH(order_of_format(MemoryFormat::channels_last, *volume),
                    Catch::Contains("channels_last is an order of 4 axes, [n, c, h, w]; got [2, 3, 4, 5, 6]"));
  CHECK_THROWS_WITH(order_of_format(MemoryFormat::channels_last_3d, *image), Catch::Contains("5 axes"));
}

TEST_CASE("an order that has more axes gives those at the end theirs", "[order]") {
  MetaRef image = described({2, 3, 4, 5}, {60, 1, 15, 3});
  const Sizes shape{3, 1, 1}, plane{4, 5};
  CHECK(strides(*ordered_meta(PG_F32, 3, shape.data(), order_of(*image))) == Sizes{1, 1, 1});
  CHECK(strides(*ordered_meta(PG_F32, 2, plane.data(), order_of(*image))) == Sizes{5, 1});
}
