// SPDX-License-Identifier: Apache-2.0
// The promotion table, against PyTorch's torch.promote_types written out.
#include "call/promote.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "perigee/plugin.hpp"

using perigee::promote_dtypes;

namespace {

const std::vector<uint32_t> dtypes{PG_B8,  PG_U8,   PG_I8,  PG_I16, PG_I32, PG_I64,
                                   PG_F16, PG_BF16, PG_F32, PG_F64, PG_C64, PG_C128};

// A row and a column for each of `dtypes`, in that order.
const uint32_t table[12][12] = {
    {PG_B8, PG_U8, PG_I8, PG_I16, PG_I32, PG_I64, PG_F16, PG_BF16, PG_F32, PG_F64, PG_C64, PG_C128},
    {PG_U8, PG_U8, PG_I16, PG_I16, PG_I32, PG_I64, PG_F16, PG_BF16, PG_F32, PG_F64, PG_C64, PG_C128},
    {PG_I8, PG_I16, PG_I8, PG_I16, PG_I32, PG_I64, PG_F16, PG_BF16, PG_F32, PG_F64, PG_C64, PG_C128},
    {PG_I16, PG_I16, PG_I16, PG_I16, PG_I32, PG_I64, PG_F16, PG_BF16, PG_F32, PG_F64, PG_C64, PG_C128},
    {PG_I32, PG_I32, PG_I32, PG_I32, PG_I32, PG_I64, PG_F16, PG_BF16, PG_F32, PG_F64, PG_C64, PG_C128},
    {PG_I64, PG_I64, PG_I64, PG_I64, PG_I64, PG_I64, PG_F16, PG_BF16, PG_F32, PG_F64, PG_C64, PG_C128},
    {PG_F16, PG_F16, PG_F16, PG_F16, PG_F16, PG_F16, PG_F16, PG_F32, PG_F32, PG_F64, PG_C64, PG_C128},
    {PG_BF16, PG_BF16, PG_BF16, PG_BF16, PG_BF16, PG_BF16, PG_F32, PG_BF16, PG_F32, PG_F64, PG_C64, PG_C128},
    {PG_F32, PG_F32, PG_F32, PG_F32, PG_F32, PG_F32, PG_F32, PG_F32, PG_F32, PG_F64, PG_C64, PG_C128},
    {PG_F64, PG_F64, PG_F64, PG_F64, PG_F64, PG_F64, PG_F64, PG_F64, PG_F64, PG_F64, PG_C128, PG_C128},
    {PG_C64, PG_C64, PG_C64, PG_C64, PG_C64, PG_C64, PG_C64, PG_C64, PG_C64, PG_C128, PG_C64, PG_C128},
    {PG_C128, PG_C128, PG_C128, PG_C128, PG_C128, PG_C128, PG_C128, PG_C128, PG_C128, PG_C128, PG_C128, PG_C128},
};

}  // namespace

TEST_CASE("promotion follows the table both ways", "[promote]") {
  for (size_t i = 0; i < dtypes.size(); i++) {
    for (size_t j = 0; j < dtypes.size(); j++) {
      INFO(pg::dtype_name(dtypes[i]) << " with " << pg::dtype_name(dtypes[j]));
      CHECK(std::string(pg::dtype_name(promote_dtypes(dtypes[i], dtypes[j]))) == pg::dtype_name(table[i][j]));
    }
  }
}

TEST_CASE("nothing is neutral", "[promote]") {
  CHECK(promote_dtypes(0, PG_I32) == PG_I32);
  CHECK(promote_dtypes(PG_I32, 0) == PG_I32);
}
