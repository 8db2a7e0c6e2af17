// SPDX-License-Identifier: Apache-2.0
// A region with reductions whose lines are columns, or too long for a block's memory, or cut in parts, as the source of
// one kernel. What they reduce is made element by element as it is taken, and what is made of their results follows
// where those are known: behind a line, or where it has parts in a second launch of the same kernel. Nothing that is
// made here reads both. The kernel's parameter is
//
//   int64_t lines, length, inner, tiles;     of LineAxes; tiles: blocks that a row of columns takes
//   uint64_t aligned;                        as in source.hpp
//   char* data[operands];                    inputs, then outputs
//   uint64_t number[numbers];
//   Axis axis[rank];  int64_t stride[layouts][rank];
//   int64_t lanes, per_part, parts, end_lanes, second;   threads a line, elements a part; of the second launch; whether
//   char* states[reductions];                            of parts
#pragma once

#include "line_node.hpp"
#include "source.hpp"

namespace cuda::fused {

struct StreamSource {
  Source source;
  LineAxes axes;
  Grid grid, end_grid;  // end_grid: of the second launch
  int32_t lanes = 1, end_lanes = 1;
  int64_t tiles = 0, parts = 1, per_part = 0;
  uint32_t reductions = 0;

  uint64_t state_bytes() const;  // of one reduction
  uint64_t workspace() const { return parts > 1 ? reductions * state_bytes() : 0; }
  uint64_t argument_bytes() const { return source.argument_bytes() + 8 * (7 + reductions); }
};

// Whether a piece is such.
bool has_streams(const pg::Region& piece);
// Refuses a piece that is too large, or that reads or writes over what it must not.
StreamSource write_streams(const pg::Region& piece);

}  // namespace cuda::fused
