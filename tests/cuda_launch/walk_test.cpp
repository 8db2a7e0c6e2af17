// SPDX-License-Identifier: Apache-2.0
// From element numbers to offsets, with and without divisions, below and beyond 2^31.
#include "walk.hpp"

#include <catch2/catch.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "tensor.hpp"

using namespace cuda;

namespace {

int64_t product(const List& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// Where element p lies, by the definition.
int64_t offset_of(int64_t p, const List& shape, const List& stride) {
  int64_t at = 0;
  for (size_t i = shape.size(); i-- > 0;) {
    at += p % shape[i] * stride[i];
    p /= shape[i];
  }
  return at;
}

Walk<1> walk_over(const List& shape, const List& stride) {
  return walk_of(static_cast<uint32_t>(shape.size()), shape.data(), stride.data());
}

// All elements, or many of very many: the first, the last, and what lies around powers of two.
List places(int64_t count) {
  List list;
  if (count <= 4096) {
    for (int64_t p = 0; p < count; p++) list.push_back(p);
    return list;
  }
  for (int64_t p = 1; p > 0 && p < count; p *= 2) {
    for (int64_t near : {p - 1, p, p + 1}) list.push_back(near);
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; i++) list.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(count)));
  list.push_back(count - 1);
  return list;
}

void check(const List& shape, const List& stride) {
  CAPTURE(shape, stride);
  Walk<1> w = walk_over(shape, stride);
  int64_t count = product(shape);
  REQUIRE(w.count == count);
  CHECK(w.narrow == (count < (int64_t{1} << 31)));
  for (int64_t p : places(count)) {
    int64_t expected = offset_of(p, shape, stride);
    if (w.offset(p) != expected) {
      CAPTURE(p);
      REQUIRE(w.offset(p) == expected);
    }
    if (w.linear(0) && p != expected) FAIL("called linear, and is not");
  }
}

}  // namespace

TEST_CASE("division by multiplication is exact below 2^31") {
  std::mt19937_64 random(3);
  List divisors = {1, 2, 3, 5, 7, 10, 31, 32, 33, 255, 256, 257, 641, 65535, 65536, 65537, 6700417};
  for (int bit = 2; bit <= 31; bit++) {
    for (int64_t near : {-1, 0, 1}) divisors.push_back((int64_t{1} << bit) + near);
  }
  for (int i = 0; i < 2000; i++) divisors.push_back(1 + static_cast<int64_t>(random() % 2147483647u));
  for (int64_t d : divisors) {
    if (d > kNarrow) continue;
    Divider divider(d);
    auto check = [&](int64_t n) {
      if (n < 0 || n >= kNarrow) return;
      if (divider.divide(static_cast<uint32_t>(n)) != static_cast<uint32_t>(n / d)) {
        CAPTURE(n, d);
        REQUIRE(divider.divide(static_cast<uint32_t>(n)) == static_cast<uint32_t>(n / d));
      }
    };
    for (int64_t n : {int64_t{0}, d - 1, d, d + 1, 2 * d - 1, 2 * d, kNarrow - 1, kNarrow - d, kNarrow / d * d - 1,
                      kNarrow / d * d}) {
      check(n);
    }
    for (int i = 0; i < 200; i++) check(static_cast<int64_t>(random() % static_cast<uint64_t>(kNarrow)));
  }
}

TEST_CASE("an extent splits alike in 32 and 64 bits") {
  for (int64_t size : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{1000}, int64_t{65537}, kNarrow - 1}) {
    Extent extent(size);
    for (int64_t n : places(kNarrow)) {
      int64_t a = n, b = n;
      int64_t narrow = extent.split(a, true), wide = extent.split(b, false);
      if (narrow != wide || a != b) {
        CAPTURE(size, n);
        REQUIRE(narrow == wide);
        REQUIRE(a == b);
      }
    }
  }
  int64_t n = (int64_t{1} << 40) + 5;
  CHECK(Extent(int64_t{1} << 33).split(n, false) == 128);
  CHECK(n == 5);
}

TEST_CASE("dense, transposed, broadcast, sliced") {
  check({}, {});
  check({1}, {1});
  check({7}, {1});
  check({7}, {3});
  check({2, 3, 4}, {12, 4, 1});
  check({4, 3, 2}, {1, 4, 12});
  check({5, 6}, {0, 1});
  check({5, 6}, {1, 0});
  check({5, 6}, {0, 0});
  check({3, 1, 4, 1}, {8, 77, 2, 99});
  check({2, 2, 2, 2, 2, 2, 2, 2}, {128, 64, 32, 16, 8, 4, 2, 1});
  check({2, 3, 2, 3, 2, 3}, {1, 2, 6, 12, 36, 72});
}

TEST_CASE("a walk over nothing") {
  CHECK(walk_over({0}, {1}).count == 0);
  CHECK(walk_over({3, 0, 2}, {0, 2, 1}).count == 0);
  CHECK(walk_over({3, 0, 2}, {0, 2, 1}).narrow);
}

TEST_CASE("counts at and beyond 2^31, and offsets beyond it") {
  check({int64_t{1} << 31}, {1});
  check({(int64_t{1} << 31) - 1}, {1});
  check({46341, 46341}, {46341, 1});                          // 2^31 and a bit
  check({46340, 46340}, {1, 46340});                          // a bit less
  check({3, int64_t{1} << 31, 5}, {0, 1, 0});                 // broadcast
  check({65536, 65536, 4}, {4, 65536 * 4, 1});                // 2^34
  check({1000, 1000}, {int64_t{1} << 33, int64_t{1} << 22});  // few elements, far apart
  check({int64_t{1} << 20, int64_t{1} << 20}, {int64_t{1} << 20, 1});
}

TEST_CASE("several operands are walked at once") {
  const int64_t shape[] = {4, 5, 6};
  const int64_t stride[3][PG_MAX_RANK] = {{30, 6, 1}, {0, 6, 1}, {1, 4, 20}};
  Walk<3> w(pg::make_nest<3>(3, shape, stride, false));
  for (int64_t p = 0; p < 120; p++) {
    int64_t at[3];
    w.locate(p, at);
    for (int k = 0; k < 3; k++) {
      REQUIRE(at[k] == offset_of(p, {4, 5, 6}, {stride[k][0], stride[k][1], stride[k][2]}));
    }
  }
}
