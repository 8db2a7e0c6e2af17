// SPDX-License-Identifier: Apache-2.0
// Interned descriptions: equal ones are one object, sizes are checked, unused ones go.
#include "tensor/meta.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "tensor/dims.hpp"

using namespace perigee;

TEST_CASE("equal descriptions are the same object", "[meta]") {
  int64_t shape[] = {2, 3}, other[] = {3, 2}, stride[] = {3, 1};
  MetaRef a = intern_meta(PG_F32, 2, shape), b = intern_meta(PG_F32, 2, shape, stride);
  CHECK(a.get() == b.get());
  CHECK(a.get() != intern_meta(PG_F64, 2, shape).get());
  CHECK(a.get() != intern_meta(PG_F32, 2, other).get());
  CHECK(a->contiguous);
  CHECK(a->numel == 6);
  CHECK(a->bytes == 24);
}

TEST_CASE("strides of axes of size 1 do not matter", "[meta]") {
  int64_t shape[] = {1, 3}, odd[] = {77, 1};
  CHECK(intern_meta(PG_F32, 2, shape, odd).get() == intern_meta(PG_F32, 2, shape).get());
}

TEST_CASE("views know how far they reach", "[meta]") {
  int64_t shape[] = {3, 2}, transposed[] = {1, 3}, stepped[] = {10, 2};
  CHECK_FALSE(intern_meta(PG_F32, 2, shape, transposed)->contiguous);
  CHECK(intern_meta(PG_F32, 2, shape, transposed)->span == 6 * 4);
  CHECK(intern_meta(PG_F32, 2, shape, stepped)->span == (2 * 10 + 2 + 1) * 4);
}

TEST_CASE("no elements and no dimensions", "[meta]") {
  int64_t empty[] = {0, 5};
  CHECK(intern_meta(PG_F32, 2, empty)->numel == 0);
  CHECK(intern_meta(PG_F32, 2, empty)->contiguous);
  CHECK(intern_meta(PG_F32, 0, nullptr)->numel == 1);
}

TEST_CASE("impossible sizes are errors", "[meta]") {
  int64_t negative[] = {2, -3}, huge[] = {int64_t{1} << 40, int64_t{1} << 40},
          huge_empty[] = {int64_t{1} << 40, 0, int64_t{1} << 40};
  int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  CHECK_THROWS_WITH(intern_meta(PG_F32, 2, negative), "shape [2, -3] has a negative size");
  CHECK_THROWS_WITH(intern_meta(PG_F32, 2, huge), Catch::Contains("more bytes than an int64 can count"));
  CHECK_THROWS_WITH(intern_meta(PG_F32, 3, huge_empty), Catch::Contains("more bytes than an int64 can count"));
  CHECK_THROWS_WITH(intern_meta(PG_F32, 9, nine), Catch::Contains("rank 9"));
}

TEST_CASE("symbolic descriptions have no sizes", "[meta]") {
  int64_t shape[] = {make_symbol("batch"), 3};
  MetaRef m = intern_meta(PG_F32, 2, shape);
  CHECK(m->symbolic);
  CHECK(m->numel == -1);
  CHECK(m->view.stride == nullptr);
  CHECK(shape_text(*m) == "[batch, 3]");
}

TEST_CASE("unused descriptions are dropped when there are many", "[meta]") {
  for (int64_t i = 1; i <= 200000; i++) intern_meta(PG_I64, 1, &i);
  CHECK(meta_count() < 140000);
}

TEST_CASE("threads agree on the object", "[meta]") {
  std::array<const Meta*, 4> seen{};
  std::vector<std::thread> threads;
  int64_t shape[] = {123, 457};
  MetaRef keep = intern_meta(PG_F32, 2, shape);
  for (size_t t = 0; t < seen.size(); t++)
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 2000; i++) {
        int64_t other[] = {i, static_cast<int64_t>(t)};
        intern_meta(PG_F32, 2, other);
        seen[t] = intern_meta(PG_F32, 2, shape).get();
      }
    });
  for (std::thread& t : threads) t.join();
  for (const Meta* m : seen) CHECK(m == keep.get());
}
