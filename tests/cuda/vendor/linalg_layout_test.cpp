// SPDX-License-Identifier: Apache-2.0
// The decisions that turn strided products into calls of cuBLASLt, without CUDA: calls are carried out as cuBLASLt's
// documentation words them, and compared with plain loops.
#include "linalg/layout.hpp"

#include <catch2/catch.hpp>
#include <random>

using namespace cuda::linalg;

namespace {

using Numbers = std::vector<int64_t>;

int64_t at_of(const BatchAxis& axis, int64_t BatchAxis::*step, int64_t i) { return axis.*step * i; }

// c[...] by the definition, with the shape's own strides.
void multiply_plain(const ProductShape& s, const Numbers& a, const Numbers& b, Numbers& c) {
  for (int64_t q = 0; q < s.batch_count(); q++) {
    int64_t at[3] = {0, 0, 0}, rest = q;
    for (size_t i = s.batch.size(); i-- > 0; rest /= s.batch[i].size) {
      int64_t step = rest % s.batch[i].size;
      at[0] += at_of(s.batch[i], &BatchAxis::a, step), at[1] += at_of(s.batch[i], &BatchAxis::b, step),
          at[2] += at_of(s.batch[i], &BatchAxis::c, step);
    }
    for (int64_t i = 0; i < s.m; i++) {
      for (int64_t j = 0; j < s.n; j++) {
        int64_t sum = 0;
        for (int64_t p = 0; p < s.k; p++) {
          sum += a.at(at[0] + i * s.a.row + p * s.a.column) * b.at(at[1] + p * s.b.row + j * s.b.column);
        }
        c.at(at[2] + i * s.c.row + j * s.c.column) = sum;
      }
    }
  }
}

Numbers copied(const DenseCopy& copy, const Numbers& source) {
  if (!copy.needed) return source;
  Numbers out;
  std::vector<int64_t> index(copy.shape.size(), 0);
  for (int64_t i = 0; i < copy.count; i++) {
    int64_t from = 0, rest = i;
    for (size_t d = copy.shape.size(); d-- > 0; rest /= copy.shape[d]) from += rest % copy.shape[d] * copy.stride[d];
    out.push_back(source.at(from));
  }
  return out;
}

// Element (row, column) of op(matrix), where the matrix is column-major with leading dimension ld.
int64_t element(const Numbers& data, int64_t start, const View& view, int64_t row, int64_t column) {
  return view.column_major ? data.at(start + row + column * view.ld) : data.at(start + row * view.ld + column);
}

void run_calls(const Calls& calls, const Numbers& first, const Numbers& second, Numbers& c) {
  Numbers a = copied(calls.copy_a, first), b = copied(calls.copy_b, second);
  const ProductShape& s = calls.shape;
  for (int64_t call = 0; call < calls.count(); call++) {
    for (int64_t q = 0; q < calls.batch.size; q++) {
      BatchAxis at = calls.offset(call);
      at.a += q * calls.batch.a, at.b += q * calls.batch.b, at.c += q * calls.batch.c;
      for (int64_t i = 0; i < s.m; i++) {
        for (int64_t j = 0; j < s.n; j++) {
          int64_t sum = 0;
          for (int64_t p = 0; p < s.k; p++) {
            sum += element(a, at.a, calls.a, i, p) * element(b, at.b, calls.b, p, j);
          }
          c.at(at.c + i * calls.ldc + j) = sum;
        }
      }
    }
  }
}

ProductShape plain(int64_t m, int64_t n, int64_t k) {
  ProductShape s;
  s.m = m, s.n = n, s.k = k;
  s.a = {k, 1}, s.b = {n, 1}, s.c = {n, 1};
  return s;
}

// [outer, inner] batches of dense operands.
ProductShape batched(int64_t outer, int64_t inner, int64_t m, int64_t n, int64_t k) {
  ProductShape s = plain(m, n, k);
  s.batch = {{outer, inner * m * k, inner * k * n, inner * m * n}, {inner, m * k, k * n, m * n}};
  return s;
}

}  // namespace

TEST_CASE("an operand is read as it lies where one axis is contiguous") {
  CHECK(view_of(3, 4, {4, 1})->ld == 4);
  CHECK_FALSE(view_of(3, 4, {4, 1})->column_major);
  CHECK(view_of(3, 4, {7, 1})->ld == 7);
  CHECK(view_of(3, 4, {1, 3})->column_major);
  CHECK(view_of(3, 4, {1, 9})->ld == 9);
  CHECK_FALSE(view_of(3, 4, {8, 2}));
  CHECK_FALSE(view_of(3, 4, {0, 1}));  // a broadcast: rows overlap
  CHECK_FALSE(view_of(3, 4, {1, 0}));
  CHECK_FALSE(view_of(3, 4, {2, 1}));
}

TEST_CASE("a strided vector is a matrix with a leading dimension") {
  auto row = view_of(1, 4, {99, 5});
  REQUIRE(row);
  CHECK(row->column_major);
  CHECK(row->ld == 5);
  auto column = view_of(4, 1, {5, 99});
  REQUIRE(column);
  CHECK_FALSE(column->column_major);
  CHECK(column->ld == 5);
  CHECK_FALSE(view_of(1, 4, {4, 0}));
  CHECK(view_of(1, 1, {0, 0})->ld == 1);
}

TEST_CASE("dense batches are one strided batch") {
  auto calls = plan_calls(batched(2, 3, 4, 5, 6));
  REQUIRE(calls);
  CHECK(calls->count() == 1);
  CHECK(calls->batch.size == 6);
  CHECK(calls->batch.c == 20);
}

TEST_CASE("batches against one matrix are one product") {
  ProductShape s = batched(2, 3, 4, 5, 6);
  for (BatchAxis& axis : s.batch) axis.b = 0;
  auto calls = plan_calls(s);
  REQUIRE(calls);
  CHECK(calls->count() == 1);
  CHECK(calls->batch.size == 1);
  CHECK(calls->shape.m == 24);
}

TEST_CASE("heads in the middle are looped over, many of them copied") {
  auto heads = [](int64_t batch, int64_t count) {
    ProductShape s = plain(16, 16, 8);  // [batch, 16, heads, 8] seen as [batch, heads, 16, 8]
    s.a = {count * 8, 1}, s.b = {1, count * 8};
    int64_t outer = 16 * count * 8;
    s.batch = {{batch, outer, outer, count * 256}, {count, 8, 8, 256}};
    return s;
  };
  auto few = plan_calls(heads(32, 4));
  REQUIRE(few);
  CHECK(few->batch.size == 32);
  CHECK(few->count() == 4);
  CHECK_FALSE(few->copy_a.needed);
  auto many = plan_calls(heads(32, 12));
  REQUIRE(many);
  CHECK(many->count() == 1);
  CHECK(many->batch.size == 384);
  CHECK(many->copy_a.needed);
  CHECK(many->copy_a.count == 32 * 12 * 16 * 8);
}

TEST_CASE("an operand that is broadcast is not blown up") {
  ProductShape s = batched(20, 30, 2, 3, 4);
  s.batch[0].b = 0;                                             // b has only the inner axis
  s.a = {8, 2}, s.batch[0].a = 30 * 16 * 2, s.batch[1].a = 16;  // every other element
  auto calls = plan_calls(s);
  REQUIRE(calls);
  CHECK(calls->copy_a.needed);
  CHECK_FALSE(calls->copy_b.needed);
  CHECK(calls->batch.size == 30);
  CHECK(calls->count() == 20);
}

TEST_CASE("empties and huge sizes are not for cuBLASLt") {
  CHECK_FALSE(plan_calls(plain(0, 3, 4)));
  CHECK_FALSE(plan_calls(plain(2, 3, 0)));
  CHECK_FALSE(plan_calls(plain(int64_t{1} << 31, 3, 4)));
  CHECK(plan_calls(plain((int64_t{1} << 31) - 1, 3, 4)));
  ProductShape s = plain(1, 1, 1);
  s.batch = {{int64_t{1} << 20, 1, 0, 1}, {int64_t{1} << 20, 0, 1, int64_t{1} << 20}};
  auto calls = plan_calls(s);
  REQUIRE(calls);
  CHECK(calls->count() == int64_t{1} << 20);
}

TEST_CASE("the matrices of a batch share an alignment") {
  CHECK(batch_alignment(16, {1, 0, 0, 0}, 3, 4) == 16);
  CHECK(batch_alignment(16, {2, 0, 0, 0}, 4, 4) == 16);
  CHECK(batch_alignment(16, {2, 0, 0, 0}, 6, 4) == 8);
  CHECK(batch_alignment(16, {2, 0, 0, 0}, 3, 4) == 4);
  CHECK(batch_alignment(16, {2, 0, 0, 0}, 3, 2) == 2);
  CHECK(batch_alignment(16, {2, 0, 0, 0}, 0, 4) == 16);
}

// Random operands: dense, transposed, stepped, broadcast; up to three batch axes.
TEST_CASE("calls compute what plain loops do") {
  std::mt19937 random(7);
  auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  int copies = 0, loops = 0;
  for (int round = 0; round < 400; round++) {
    ProductShape s;
    s.m = pick(1, 4), s.n = pick(1, 4), s.k = pick(1, 4);
    std::vector<int64_t> sizes(pick(0, 3));
    for (int64_t& size : sizes) size = pick(1, 5);
    auto lay_out = [&](int64_t rows, int64_t columns, Strides& strides, int64_t BatchAxis::*step, bool result) {
      // The axes in a random order of memory, with gaps; results dense.
      std::vector<size_t> order(sizes.size() + 2);
      for (size_t i = 0; i < order.size(); i++) order[i] = i;
      if (!result) std::shuffle(order.begin(), order.end(), random);
      int64_t next = result || pick(0, 3) > 0 ? 1 : 2;
      for (size_t i = order.size(); i-- > 0;) {
        size_t axis = order[i];
        int64_t size = axis < sizes.size() ? sizes[axis] : axis == sizes.size() ? rows : columns;
        bool broadcast = !result && pick(0, 5) == 0;
        int64_t stride = broadcast ? 0 : next;
        if (!broadcast) next *= size;
        if (!result && pick(0, 4) == 0) next += 1;
        if (axis < sizes.size())
          s.batch[axis].*step = stride;
        else
          (axis == sizes.size() ? strides.row : strides.column) = stride;
      }
      return next + 4096;
    };
    s.batch.resize(sizes.size());
    for (size_t i = 0; i < sizes.size(); i++) s.batch[i].size = sizes[i];
    Numbers a(lay_out(s.m, s.k, s.a, &BatchAxis::a, false)), b(lay_out(s.k, s.n, s.b, &BatchAxis::b, false));
    int64_t count = lay_out(s.m, s.n, s.c, &BatchAxis::c, true);
    for (int64_t& x : a) x = pick(-9, 9);
    for (int64_t& x : b) x = pick(-9, 9);
    Numbers want(count, 777), got(count, 777);
    auto calls = plan_calls(s);
    REQUIRE(calls);
    copies += calls->copy_a.needed || calls->copy_b.needed;
    loops += calls->count() > 1;
    multiply_plain(s, a, b, want);
    run_calls(*calls, a, b, got);
    REQUIRE(got == want);
  }
  CHECK(copies > 50);
  CHECK(loops > 50);
}
