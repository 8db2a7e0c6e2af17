// SPDX-License-Identifier: Apache-2.0
// How reductions are dealt out: every element belongs to one part, every result to one group, and no limit is passed.
#include <catch2/catch.hpp>

#include "reduce_shape.hpp"
#include "tensor.hpp"

using namespace cuda;

namespace {

bool power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

constexpr int64_t kMany[] = {0,
                             1,
                             2,
                             3,
                             31,
                             32,
                             33,
                             64,
                             255,
                             256,
                             257,
                             511,
                             512,
                             513,
                             1023,
                             1024,
                             1025,
                             4096,
                             65535,
                             65536,
                             1 << 20,
                             (1 << 20) + 1,
                             16777217,
                             (int64_t{1} << 31) - 1,
                             int64_t{1} << 31,
                             (int64_t{1} << 31) + 1,
                             int64_t{1} << 36};

void check_parts(int64_t elements, int64_t parts, int64_t per_part, const Grid& grid) {
  CHECK(parts >= 1);
  CHECK(parts <= kMaxBlocksY);
  CHECK(grid.y == static_cast<uint64_t>(parts));
  CHECK(parts * per_part >= elements);
  if (parts > 1) CHECK((parts - 1) * per_part < elements);  // the last part is not empty
}

// The reduction of x over the axes whose bits are set, to a dense result.
ReduceShape<1> shape_of(const Tensor& x, uint32_t axes, int64_t width) {
  const pg_tensor* operands[] = {&*x};
  ReduceAxes<1> split(operands, axes);
  int64_t dense = 1;
  for (uint32_t i = split.kept; i-- > 0;) {
    split.kept_stride[0][i] = dense;
    dense *= split.kept_shape[i];
  }
  return ReduceShape<1>(PG_F32, width, pg::make_nest<2>(split.kept, split.kept_shape, split.kept_stride, false),
                        pg::make_nest<1>(split.reduced, split.reduced_shape, split.reduced_stride, false));
}

}  // namespace

TEST_CASE("rows: groups, parts and blocks") {
  for (int64_t results : kMany) {
    for (int64_t elements : kMany) {
      for (int64_t width : {1, 2, 4, 8}) {
        CAPTURE(results, elements, width);
        RowsPlan plan = plan_rows(results, elements, width);
        CHECK(power_of_two(plan.lanes));
        CHECK((plan.lanes <= 32 || plan.lanes == kReduceThreads));
        CHECK(plan.grid.threads == kReduceThreads);
        CHECK((plan.grid.x == 0) == (results == 0));
        CHECK(plan.grid.x <= kMaxBlocks);
        int64_t groups = kReduceThreads / plan.lanes;
        if (plan.grid.x < kMaxBlocks) CHECK(plan.grid.x * groups >= results);
        check_parts(elements, plan.parts, plan.per_part, plan.grid);
        CHECK(plan.per_part % (width * 32) == 0);
        // Parts are for blocks, and for few results: what they need in the workspace stays small.
        if (plan.parts > 1) CHECK(plan.lanes == kReduceThreads);
        CHECK((plan.parts == 1 || plan.parts * results <= kEnoughBlocks));
        CHECK(plan_rows(results, elements, width, false).parts == 1);
      }
    }
  }
}

TEST_CASE("columns: tiles, parts and blocks") {
  for (int64_t outer : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{600}, int64_t{1} << 22}) {
    for (int64_t columns : kMany) {
      for (int64_t elements : kMany) {
        if (columns == 0 || (outer > 1000 && columns > (1 << 20))) continue;
        CAPTURE(outer, columns, elements);
        ColumnsPlan plan = plan_columns(outer, columns, elements);
        CHECK(power_of_two(plan.lanes));
        CHECK(plan.lanes <= kReduceThreads);
        CHECK(plan.tiles * plan.lanes >= columns);
        CHECK((plan.tiles - 1) * plan.lanes < columns);
        CHECK(plan.grid.x <= kMaxBlocks);
        CHECK((plan.grid.x == 0) == (outer == 0));
        if (plan.grid.x < kMaxBlocks) CHECK(plan.grid.x == outer * plan.tiles);
        check_parts(elements, plan.parts, plan.per_part, plan.grid);
      }
    }
  }
}

TEST_CASE("the plan depends on the shape alone") {
  RowsPlan a = plan_rows(3, 1 << 20, 4), b = plan_rows(3, 1 << 20, 4);
  CHECK(a.parts == b.parts);
  CHECK(a.per_part == b.per_part);
  CHECK(a.parts > 1);
}

TEST_CASE("shapes choose rows, columns and packets") {
  auto kind = [](const Tensor& x, uint32_t axes, const void* base = nullptr) {
    ReduceArguments<1> a = shape_of(x, axes, 4).arguments(&base, 4);
    return std::make_tuple(a.columns > 0, a.linear, a.packed);
  };
  auto is = [](bool columns, bool linear, bool packed) { return std::make_tuple(columns, linear, packed); };
  CHECK(kind(Tensor({64, 128}, {128, 1}), 2) == is(false, true, false));                     // along rows
  CHECK(kind(Tensor({64, 128}, {128, 1}), 1) == is(true, false, false));                     // down columns
  CHECK(kind(Tensor({64, 128}, {128, 1}), 3) == is(false, true, false));                     // all
  CHECK(kind(Tensor({64, 128}, {1, 64}), 2) == is(true, false, false));                      // transposed
  CHECK(kind(Tensor({8, 3, 16, 16}, {768, 256, 16, 1}), 0b1101) == is(false, false, true));  // of an image's channels
  CHECK(kind(Tensor({8, 3, 5, 5}, {75, 25, 5, 1}), 0b1101) == is(false, false, false));      // 25 is no packets
  auto* odd = reinterpret_cast<const void*>(uintptr_t{4100});
  CHECK(kind(Tensor({8, 3, 16, 16}, {768, 256, 16, 1}), 0b1101, odd) == is(false, false, false));
  CHECK(kind(Tensor({4, 4, 4}, {0, 4, 1}), 2) == is(true, false, false));  // broadcast
}

TEST_CASE("packets of a walk cover what the walk does") {
  Tensor x({8, 3, 16, 16}, {768, 256, 16, 1});
  const void* base = nullptr;
  ReduceArguments<1> a = shape_of(x, 0b1101, 4).arguments(&base, 4);
  REQUIRE(a.packed);
  CHECK(a.reduced.count * 4 == a.elements);
  ReduceArguments<1> single = shape_of(x, 0b1101, 4).arguments(&base, 1);
  REQUIRE_FALSE(single.packed);
  for (int64_t p = 0; p < a.reduced.count; p++) REQUIRE(a.reduced.offset(p) == single.reduced.offset(4 * p));
  CHECK(a.per_part % 4 == 0);  // parts begin at packets
}

TEST_CASE("the workspace holds a state a part and result, and the second pass finds them") {
  Tensor x({2, 1 << 22}, {1 << 22, 1});
  ReduceShape<1> rows = shape_of(x, 2, 4);
  REQUIRE(rows.grid().y > 1);
  CHECK(rows.workspace() == 2 * rows.grid().y * kStateBytes);
  const void* base = nullptr;
  ReduceArguments<1> a = rows.arguments(&base, 4);
  rows.second_pass(a, &x);
  CHECK(a.from == &x);
  CHECK(a.to == nullptr);
  CHECK(a.from_result == a.parts);  // rows: the parts of a result are neighbours
  CHECK(a.from_part == 1);

  Tensor y({1 << 22, 2}, {2, 1});
  ReduceShape<1> columns = shape_of(y, 1, 4);
  REQUIRE(columns.grid().y > 1);
  ReduceArguments<1> b = columns.arguments(&base, 4);
  columns.second_pass(b, &y);
  CHECK(b.from_result == 1);  // columns: the results of a part are
  CHECK(b.from_part == 2);
  CHECK(shape_of(Tensor({1024, 1024}, {1024, 1}), 2, 4).workspace() == 0);
}

TEST_CASE("nothing to reduce, and nothing to answer") {
  ReduceShape<1> none = shape_of(Tensor({0, 5}, {5, 1}), 2, 4);
  CHECK(none.results() == 0);
  CHECK(none.grid().x == 0);
  ReduceShape<1> identity = shape_of(Tensor({5, 0}, {0, 1}), 2, 4);
  CHECK(identity.results() == 5);
  CHECK(identity.elements() == 0);
  CHECK(identity.grid().x > 0);  // the results of nothing are written all the same
  CHECK(identity.workspace() == 0);
}

TEST_CASE("more than 2^31 elements are walked in 64 bits") {
  constexpr int64_t kBig = (int64_t{1} << 31) + 8;
  const void* base = nullptr;
  ReduceArguments<1> all = shape_of(Tensor({kBig}, {1}), 1, 4).arguments(&base, 4);
  CHECK_FALSE(all.reduced.narrow);
  CHECK(all.per_part * all.parts >= kBig);
  ReduceArguments<1> down = shape_of(Tensor({kBig, 2}, {2, 1}), 1, 4).arguments(&base, 4);
  CHECK_FALSE(down.reduced.narrow);
  CHECK(down.reduced.offset(kBig - 1) == 2 * (kBig - 1));
}
