// SPDX-License-Identifier: Apache-2.0
// Symbolic dimensions: one normal form, arithmetic, what counts as equal, and sizes once symbols have them.
#include "tensor/dims.hpp"

#include <catch2/catch.hpp>
#include <cstdint>

using namespace perigee;

TEST_CASE("plain numbers stay plain numbers", "[dims]") {
  CHECK(dim_add(2, 3) == 5);
  CHECK(dim_mul(-2, 3) == -6);
  CHECK(dim_div(7, 2) == 3);
  CHECK(dim_div(-7, 2) == -4);  // rounds down
  CHECK(dim_max(2, 9) == 9);
  CHECK(dim_equal(4, 4));
  CHECK_FALSE(dim_equal(4, 5));
}

TEST_CASE("equal expressions are the same number", "[dims]") {
  int64_t n = make_symbol("n"), m = make_symbol("m");
  CHECK(PG_DIM_IS_SYMBOLIC(n));
  CHECK(dim_add(n, m) == dim_add(m, n));
  CHECK(dim_mul(dim_add(n, 1), dim_add(n, -1)) == dim_add(dim_mul(n, n), -1));
  CHECK(dim_add(dim_add(n, 3), dim_mul(n, -1)) == 3);
  CHECK(dim_div(dim_mul(n, 6), 2) == dim_mul(n, 3));
  CHECK(dim_div(dim_add(n, 1), 2) == dim_div(dim_add(1, n), 2));
  CHECK(dim_max(n, m) == dim_max(m, n));
  CHECK(dim_mul(n, 0) == 0);
}

TEST_CASE("symbols of one name are different symbols", "[dims]") {
  const int64_t batch = make_symbol("batch"), other = make_symbol("batch"), width = make_symbol("width");
  CHECK(batch != other);
  const int64_t twice = dim_mul(batch, 2);
  release_symbol(batch);
  release_symbol(width);
  CHECK(make_symbol("batch") == batch);  // nobody has it any more
  CHECK(dim_mul(batch, 2) == twice);
  CHECK(make_symbol("batch") != other);
}

TEST_CASE("equality is assumed unless a constant difference refutes it", "[dims]") {
  int64_t n = make_symbol("n"), m = make_symbol("m");
  CHECK(dim_equal(n, m));
  CHECK(dim_equal(n, 7));
  CHECK_FALSE(dim_equal(n, dim_add(n, 1)));
  CHECK(dim_equal(dim_mul(n, 2), dim_add(n, n)));
}

TEST_CASE("expressions have sizes once their symbols do", "[dims]") {
  int64_t n = make_symbol("n"), m = make_symbol("m");
  int64_t e = dim_add(dim_div(dim_add(dim_mul(n, 2), 1), 3), dim_max(m, n));
  CHECK(dim_value(e, {{n, 10}, {m, 4}}) == 7 + 10);
  CHECK(dim_value(12, {}) == 12);
  CHECK_THROWS_WITH(dim_value(e, {{n, 10}}), "dimension 'm' has no size yet");
}

TEST_CASE("expressions print as they are read", "[dims]") {
  int64_t n = make_symbol("batch");
  CHECK(dim_text(n) == "batch");
  CHECK(dim_text(dim_add(dim_mul(n, 2), 1)) == "2*batch + 1");
  CHECK(dim_text(dim_div(n, 2)) == "(batch)//(2)");
  CHECK(dim_text(5) == "5");
}

TEST_CASE("overflow is an error, not a small number", "[dims]") {
  CHECK_THROWS_AS(dim_mul(INT64_MAX, 2), pg::Error);
  CHECK_THROWS_AS(dim_add(INT64_MAX, 1), pg::Error);
  CHECK_THROWS_AS(dim_div(4, 0), pg::Error);
  int64_t n = make_symbol("n");
  CHECK_THROWS_AS(dim_value(dim_mul(n, n), {{n, INT64_MAX / 2}}), pg::Error);
}
