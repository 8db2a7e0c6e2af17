// SPDX-License-Identifier: Apache-2.0
// Custom nodes: operations whose gradient the front end computes; and hooks, to which it is shown. The core never calls
// a front end, so a backward pass stops at such a place, is handed out, and goes on with the gradients that come back.
#pragma once

#include "tape/tape.hpp"

namespace perigee {

// Hangs the outputs on a node over the inputs: aliases of them, which take their places; or with `rehang`, wherever
// that can be, the tensors themselves, which let go of the history that they had. The node has a number that no other
// node and no hook has: the next one, or the given one, which was answered by next_node_sequence before.
struct CustomNode {
  bool rehang = false;
  bool pure = false;    // see Node::pure
  uint64_t number = 0;  // 0: the next one
};
uint64_t record_custom(Tensor* const* inputs, uint32_t input_count, TensorRef* outputs, uint32_t output_count,
                       const CustomNode& how);

// The leaves that tensors depend on, other than through `except`, as descriptions: they serve as inputs of `backward`
// and of record_custom.
std::vector<TensorRef> leaves_of(Tensor* const* tensors, uint32_t count, Tensor* const* except, uint32_t except_count);

// ---- a pass that has stopped ----

const Node& stopped_at(const Pass& pass);
uint64_t number_of(const Pass& pass);  // the node's, or the hook's
bool creates_graph(const Pass& pass);
bool input_needed(Pass& pass, uint32_t input);
bool stopped_at_pure(const Pass& pass);
// Whether nothing was written into the memory of a tensor since it was that input, or that output, of the node.
bool is_unchanged(const Pass& pass, const Tensor& tensor, bool output, uint32_t index);
// NULL where nothing flowed; at a hook output 0 is what it is shown.
TensorRef cotangent_of(const Pass& pass, uint32_t output);
// `saved`, which holds what that output held, as the output of the node: for gradients of gradients.
TensorRef link_output(const Pass& pass, Tensor& saved, uint32_t output);
// At a hook there is one gradient, which takes the place of what was shown; NULL keeps that.
// `results`: where the gradients of BackwardCall::inputs go in the end.
PassRef go_on(PassRef pass, Tensor* const* gradients, Tensor** results);

}  // namespace perigee
