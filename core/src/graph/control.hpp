// SPDX-License-Identifier: Apache-2.0
// Nodes that run graphs of their own, bodies: one of two (cond), one for each step of tensors (scan), one for as long
// as another says (while_loop). Gradients are the front end's: it records them as further nodes of these kinds, which
// read what `keep_value` makes an output of the first.
#pragma once

#include "graph/body.hpp"

namespace perigee {

enum class ControlKind : uint8_t { cond, scan, loop, count };

struct Control {
  static constexpr uint32_t none = UINT32_MAX;
  struct Body {
    GraphRef graph;
    std::string name;                 // "then"
    std::vector<uint32_t> arguments;  // by input of the node: the body's value that stands for it, or none
    std::vector<uint32_t> results;    // by output of the node; none: it has none there
    std::vector<uint8_t> linked;      // by result: gradients go through it
  };
  ControlKind kind;
  // cond: what to do, and what otherwise; input 0 decides. scan: the step. loop: the condition (one result, for no
  // output), and the step.
  std::vector<Body> bodies;
  // The first inputs of scan and loop: what is handed on from step to step, whose last values are the first outputs; of
  // scan then tensors whose steps the body gets. Further outputs are stacked by step.
  uint32_t carries = 0, steps = 0;
  int64_t length = 0;  // steps of a scan, or the symbol for the number of rounds of a loop (0: nobody asked for it)
  int64_t most = -1;   // rounds of a loop; -1: no limit
  bool reverse = false;
  std::vector<uint8_t> linked;  // by input: it came with a history
  uint32_t own = 0;             // outputs that the node was made with; keep_value made the others

  bool is_stacked(uint32_t output) const { return kind != ControlKind::cond && output >= carries; }
  Body& step_body() { return bodies.back(); }
};

// Stands for nodes of a kind where an operator is looked for: it has a name, and can do nothing.
const Op& control_op(ControlKind kind);
const char* control_name(ControlKind kind);
// A name for a node to come, in the scope in force.
std::string reserve_name(Graph& g, const std::string& wanted);
// Appends the node. `inputs` are tensors of g or from around it; the bodies are closed. Answers the node's number.
uint32_t add_control(Graph& g, Control control, const std::string& name, Tensor* const* inputs, uint32_t input_count,
                     std::vector<TensorRef>& outputs);
// A value of the node's body as one more output, without a history. Where the body does not run it is zero.
TensorRef keep_value(Graph& g, uint32_t node, uint32_t body, Tensor& inner);

}  // namespace perigee
