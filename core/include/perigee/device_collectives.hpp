// SPDX-License-Identifier: Apache-2.0
// perigee/device_collectives.hpp: what engines of pg.device_collectives have in common: whether a call makes sense, and
// how much of its input and output it touches.
//
//   for (uint32_t i = 0; i < rows; i++) pg::check_row(calls + i * own, own, first, members);
#pragma once

#include "perigee/device_collectives.h"
#include "perigee/plugin.hpp"

namespace pg {

constexpr bool is_pair(uint32_t kind) { return kind == PG_COLLECTIVE_SEND || kind == PG_COLLECTIVE_RECEIVE; }
constexpr bool is_reduction(uint32_t kind) {
  return kind == PG_COLLECTIVE_ALL_REDUCE || kind == PG_COLLECTIVE_REDUCE || kind == PG_COLLECTIVE_REDUCE_SCATTER;
}

// Elements of a member's input and output; 0: there is none, or it is not looked at.
uint64_t input_count(const pg_collective& call, size_t member, size_t members);
uint64_t output_count(const pg_collective& call, size_t member, size_t members);

// Throws unless all members make the same call, or some send what others receive. `row` has the parts of `own` members,
// `first` and those behind it, of `members` in all.
void check_row(const pg_collective* const* row, size_t own, size_t first, size_t members);

}  // namespace pg
