// SPDX-License-Identifier: Apache-2.0
// The tape: which operator made which tensor of what, with what its gradient rule may use.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/node.hpp"

namespace perigee {

uint64_t next_node_sequence();
bool is_differentiable(uint32_t dtype);
// Where a tensor's history begins; brings a view up to date whose base was written to since.
Edge edge_of(Tensor& tensor);
inline bool needs_gradient(Tensor& tensor) {
  return tensor.node || (tensor.view && base_of(tensor).epoch != tensor.view->epoch && edge_of(tensor).node);
}
void set_requires_grad(Tensor& tensor, bool on);
// Backward passes stop with the whole gradient of the tensor, as it is now, before they use it.
void set_hook(Tensor& tensor, uint64_t number);
void retain_gradient(Tensor& tensor);    // collects the gradient of a computed tensor, as a leaf does
TensorRef* gradient_of(Tensor& tensor);  // where its gradient is collected; NULL: nowhere
TensorRef* gradient_of(Node& node, uint32_t output);

// What an operator call was, as the tape sees it. Inputs are flat.
struct TapeCall {
  const Op* op;
  Tensor* const* inputs;
  uint32_t input_count;
  const uint32_t* groups;  // declared inputs' lengths
  const void* attrs;
  Tensor* const* outputs;  // all, hidden ones last
  uint32_t output_count;
  bool in_place = false;
  Tensor* before = nullptr;          // input 0 as it was, for what is saved of it
  const uint32_t* values = nullptr;  // in a graph: what the inputs are there, eager ones too
};
// Whether the call must be recorded: gradients are on, and something it depends on needs one.
bool wants_tape(const TapeCall& call);
// The node for a call, saving what its schema declares. Call it before versions are raised; attach it afterwards.
NodeRef make_node(const TapeCall& call);
void attach_node(const NodeRef& node, Tensor* const* outputs, uint32_t count);
// An eager write into `target` (in_place operator, recorded as `node`'s output 0): gives target, and the base that it
// may be a view of, the new history.
void record_write(Tensor& target, const NodeRef& node);
// Throws when writing into `target` would break gradients: leaves that require them, and views of such leaves.
void check_writable(Tensor& target, const char* op);

using ViewChain = std::vector<Node::Step>;
ViewChain chain_of(const Tensor& view);                       // from its base to it
TensorRef apply_chain(const ViewChain& chain, Tensor& base);  // the same view of another tensor
// `base` with the part that the chain shows replaced by `value`; emits operators.
TensorRef write_back(const ViewChain& chain, Tensor& base, Tensor& value);
// Why a description that a gradient rule got has no contents; empty where the rule simply did not declare it as saved.
std::string stale_reason(const Tensor& tensor);

struct BackwardCall {
  Tensor* const* roots;
  Tensor* const* seeds;  // NULL, or entries that may be NULL
  uint32_t root_count;
  Tensor* const* inputs = nullptr;  // NULL: accumulate into leaves
  uint32_t input_count = 0;
  bool retain_graph = false, create_graph = false;
  Tensor** gradients = nullptr;
};
// A backward pass that stopped at a custom node or a hook.
class Pass;
struct DropPass {
  void operator()(Pass* pass) const;
};
using PassRef = std::unique_ptr<Pass, DropPass>;
// NULL when it is done.
PassRef backward(const BackwardCall& call);

}  // namespace perigee
