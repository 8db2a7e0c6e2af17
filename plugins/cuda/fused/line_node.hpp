// SPDX-License-Identifier: Apache-2.0
// Reductions of lines as parts of generated kernels. Which thread adds what is decided as for the operator's own kernel
// (reduce_plan.hpp), so that the bits are the same.
#pragma once

#include <string>

#include "perigee/compiler.hpp"

namespace cuda::fused {

struct LineNode {
  pg::Region::Call call;
  std::string reducer;  // its type (reducers.cuh)
  std::string fields;   // statements that set what it has of its own; `length` is a line's
  uint32_t dtype = 0;
  int64_t lines = 0, length = 0;
  int32_t lanes = 1;
  int64_t per_part = 0;
};

bool is_line_operator(const pg::Region& region, uint32_t node);
// Refuses what is no part of a generated kernel: other axes than the last ones, lines that are too long for a block's
// memory or so few that the operator's kernel cuts them in pieces.
void read_line_node(const pg::Region& region, uint32_t node, LineNode& out);

// Whether t holds a number for each of the lines of so many elements that `full` consists of, in their order.
bool holds_numbers(const pg_tensor& t, const pg_tensor& full, int64_t length);
// The same, and broadcasting it to `full` gives each line its own.
bool spreads_numbers(const pg_tensor& t, const pg_tensor& full, int64_t length);

}  // namespace cuda::fused
