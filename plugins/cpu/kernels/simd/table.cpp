// SPDX-License-Identifier: Apache-2.0
// This instruction set's table.
#include "loop.hpp"

#define PG_TEXT_(x) #x
#define PG_TEXT(x) PG_TEXT_(x)

namespace cpu::PG_CPU_ISA {

const Simd* make_table() {
  static Simd table{};
  table.name = PG_TEXT(PG_CPU_ISA);
  fill_binary(table);
  fill_unary(table);
  fill_bf16(table);
  fill_move(table);
  fill_reduce(table);
  fill_losses(table);
  fill_bools(table);
  fill_rows(table);
  fill_short_lines(table);
  fill_short_folds(table);
  fill_norm_lines(table);
  fill_random(table);
  fill_update(table);
  fill_attention(table);
  fill_resample(table);
  fill_bags(table);
  fill_image_rows(table);
  fill_narrow_floats(table);
  fill_narrow_whole(table);
  return &table;
}

}  // namespace cpu::PG_CPU_ISA
