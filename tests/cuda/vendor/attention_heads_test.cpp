// SPDX-License-Identifier: Apache-2.0
// How attention's heads become blocks and batches of products.
#include "kernels/attention_heads.hpp"

#include <catch2/catch.hpp>

using cuda::HeadBlocks;
using cuda::HeadOperand;
using Lead = std::vector<int64_t>;

TEST_CASE("a block of heads has all of the inner axes and a part of the next one") {
  struct {
    Lead shape;
    int64_t most, heads, count;
  } const rows[] = {
      {{}, 5, 1, 1},          {{8}, 100, 8, 1},      {{8}, 5, 4, 2},       {{7}, 5, 1, 7},
      {{3, 4}, 12, 12, 1},    {{3, 4}, 11, 4, 3},    {{3, 4}, 3, 2, 6},    {{6, 4}, 13, 12, 2},
      {{2, 6, 4}, 13, 12, 4}, {{2, 3, 4}, 0, 1, 24}, {{5, 0, 4}, 8, 0, 0}, {{2, 1, 3, 1}, 3, 3, 2},
  };
  for (const auto& row : rows) {
    HeadBlocks blocks(row.shape, row.most);
    CAPTURE(row.shape, row.most);
    CHECK(blocks.heads == row.heads);
    CHECK(blocks.count == row.count);
  }
}

TEST_CASE("blocks begin where their heads lie, whatever the strides") {
  // [2, 6, 5, 4] of a [2, 5, 6, 4] whose axes were swapped.
  HeadOperand q;
  q.lead = {120, 4}, q.matrix = {24, 1};
  HeadBlocks blocks({2, 6}, 3);
  REQUIRE(blocks.heads == 3);
  Lead begins;
  for (int64_t block = 0; block < blocks.count; block++) begins.push_back(blocks.offset(q, block));
  CHECK(begins == Lead{0, 12, 120, 132});
  auto product = blocks.product(PG_BF16, 5, 7, 4, q, HeadOperand({2, 6}, 7, 4).turned());
  REQUIRE(product.batch.size() == 1);
  CHECK(product.batch[0].size == 3);
  CHECK(product.batch[0].a == 4);
  CHECK(product.batch[0].b == 28);
  CHECK(product.batch[0].c == 35);
  CHECK((product.b.row == 1 && product.b.column == 4));
  CHECK(product.dtype == PG_BF16);  // operands go into the product as they are
}

TEST_CASE("scores of some heads are there at a time, and of one at least") {
  constexpr int64_t kQueries = 4096;
  int64_t shape[] = {2, 16, kQueries, 64}, stride[] = {0, 0, 64, 1};
  pg_tensor t{};
  t.rank = 4, t.shape = shape, t.stride = stride;
  cuda::Heads heads(t, t, t);
  CHECK(heads.blocks(4).heads == 1);  // 64 MiB a head
  CHECK(heads.blocks(16).heads == 1);
  shape[2] = 512;
  CHECK(cuda::Heads(t, t, t).blocks(6).heads == 32);
}
