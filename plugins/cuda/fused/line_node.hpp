// SPDX-License-Identifier: Apache-2.0
// What works on lines, as a part of generated kernels: reductions, softmax, its gradient and layer_norm. Which thread
// adds what is decided as for the operator's own kernel (reduce_plan.hpp), so that the bits are the same.
#pragma once

#include <string>

#include "../reduce_plan.hpp"
#include "perigee/compiler.hpp"

namespace cuda::fused {

// A dense tensor of `outer` by `length` by `inner` elements, of which the middle ones are a line: `inner` of 1: they
// lie together; otherwise they are columns.
struct LineAxes {
  uint32_t first = 0, last = 0;  // axes first .. last - 1 are those of a line
  int64_t outer = 1, length = 1, inner = 1;
  int64_t lines() const { return outer * inner; }
  bool operator==(const LineAxes&) const = default;
};

struct LineNode {
  enum Kind : uint8_t { kReduction, kSoftmax, kSoftmaxGrad, kLayerNorm };
  pg::Region::Call call;
  Kind kind = kReduction;
  uint32_t dtype = 0;  // of the elements
  LineAxes axes;
  std::string storage;  // what elements are read by (access.cuh)
  int width = 1;        // elements of a packet of it
  // Nothing can be made of its results and of elements in one kernel: a line is read once, by several blocks maybe.
  bool streamed = false;

  // Of reductions.
  std::string reducer;  // its type (reducers.cuh)
  std::string fields;   // statements that set what it has of its own; `length` is a line's
  uint32_t result_dtype = 0;
  int32_t lanes = 1;
  int64_t parts = 1, per_part = 0, tiles = 0;
  int batch = 1;  // elements of a column that are taken together
  Grid grid;      // of a kernel that does nothing else

  // Of the others, which make a whole line of one.
  bool in_packets = false;   // where x begins at one
  int32_t single_lanes = 1;  // where it does not
  int kept = 0;              // elements of a lane that has its part in registers; 0: none has
  bool whole() const { return kind != kReduction; }
  // The first so many inputs are lines.
  uint32_t lines_read() const { return kind == kSoftmaxGrad ? 2 : 1; }
};

// Whether a node reads what is in its input i, not its shape alone.
bool is_read(const pg_node& node, uint32_t i);
// Calls f with the values that a node reads, or makes.
template <class F>
void each_input(const pg_node& node, const F& f) {
  for (uint32_t i = 0; i < node.input_count; i++)
    if (is_read(node, i)) f(node.inputs[i]);
}
template <class F>
void each_output(const pg_node& node, const F& f) {
  for (uint32_t k = 0; k < node.output_count; k++)
    if (node.outputs[k] != PG_VALUE_NONE) f(node.outputs[k]);
}

bool is_line_operator(const pg::Region& region, uint32_t node);
// Refuses what is no part of a generated kernel.
void read_line_node(const pg::Region& region, uint32_t node, LineNode& out);

// Whether t holds a number for each of the lines of `full`, in their order.
bool holds_numbers(const pg_tensor& t, const pg_tensor& full, const LineAxes& axes);
// The same, and broadcasting it to `full` gives each line its own. Lines lie together.
bool spreads_numbers(const pg_tensor& t, const pg_tensor& full, const LineAxes& axes);
// The last axes of `full`, of so many elements. False: there are none such.
bool find_axes(const pg_tensor& full, int64_t length, LineAxes& axes);

}  // namespace cuda::fused
