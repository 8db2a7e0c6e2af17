// SPDX-License-Identifier: Apache-2.0
// Histories of what a plan hands out: that they are over, or the same ones made again.
#include <map>

#include "compile/compiled.hpp"

namespace perigee {
namespace {

// The node without its edges; it has saved nothing.
NodeRef apart_from_others(const Node& node) {
  auto copy = NodeRef::adopt(new Node());
  copy->op = node.op;
  copy->groups = node.groups;
  copy->attrs = node.attrs;
  copy->inputs = node.inputs;
  copy->outputs = node.outputs;
  for (InputRecord& x : copy->inputs) x.edge = {};
  return copy;
}

}  // namespace

// Which histories are over: another backward would say that what they saved was released.
void Compiled::find_histories() {
  std::map<const Node*, bool> released;
  std::vector<std::pair<Node*, size_t>> open;
  auto over = [&](Node* from) {
    if (auto it = released.find(from); it != released.end()) return it->second;
    released[from] = from->released;
    open.assign(1, {from, 0});
    while (!open.empty()) {
      auto& [node, next] = open.back();
      if (next == node->inputs.size()) {
        const bool found = released[node];
        open.pop_back();
        if (found && !open.empty()) released[open.back().first] = true;
        continue;
      }
      Node* behind = node->inputs[next++].edge.node.get();
      if (behind == nullptr) continue;
      auto [it, fresh] = released.try_emplace(behind, behind->released);
      if (fresh) {
        open.emplace_back(behind, 0);
      } else if (it->second) {
        released[node] = true;
      }
    }
    return released[from];
  };
  std::vector<NodeRef> nodes;
  for (TensorPlan& t : recording_->tensors) {
    nodes.push_back(t.node);
    if (t.outside || !t.node) continue;
    t.history = over(t.node.get()) ? History::released : History::alive;
    auto shown = NodeRef::adopt(new Node());
    shown->op = t.node->op;
    shown->kind = t.node->kind == NodeKind::custom ? NodeKind::custom : NodeKind::op;
    if (shown->kind == NodeKind::custom) shown->attrs.assign(sizeof(uint64_t), 0);  // nobody's number
    shown->released = true;
    shown->outputs.resize(t.node->outputs.size());
    for (uint32_t i = 0; i < shown->outputs.size(); i++) shown->outputs[i].meta = t.node->outputs[i].meta;
    t.node = std::move(shown);
  }
  find_exact_histories(nodes);
}

// Histories that are not over, of operators whose gradients need no contents, are made again when they are handed out.
void Compiled::find_exact_histories(const std::vector<NodeRef>& nodes) {
  std::vector<TensorPlan>& tensors = recording_->tensors;
  auto is_exact = [&](const Item& item, const Node& node) {
    if (node.kind != NodeKind::op || node.op != item.op || node.rare || node.outputs.size() != item.outputs.size() ||
        node.inputs.size() != item.inputs.size())
      return false;
    for (uint32_t n : item.outputs)
      if (n == no_number || tensors[n].view || !tensors[n].born || tensors[n].history != History::alive ||
          nodes[n].get() != &node)
        return false;
    for (const OutputRecord& y : node.outputs)
      if (y.saved) return false;
    for (size_t i = 0; i < node.inputs.size(); i++) {
      if (node.inputs[i].saved) return false;
      if (!node.inputs[i].edge.node) continue;
      const TensorPlan& x = tensors[item.inputs[i]];
      if (!x.outside && x.history != History::exact) return false;
    }
    return true;
  };
  for (Item& item : recording_->items) {
    if (item.kind != ItemKind::op || item.in_place || item.outputs.empty() || item.outputs[0] == no_number) continue;
    const NodeRef& node = nodes[item.outputs[0]];
    if (!node || !is_exact(item, *node)) continue;
    item.like = apart_from_others(*node);
    for (uint32_t n : item.outputs) tensors[n].history = History::exact;
  }
}

void Compiled::give_history(const Item& item, Tensor* const* inputs, uint32_t input_count) {
  NodeRef node = apart_from_others(*item.like);
  node->sequence = next_node_sequence();
  for (uint32_t i = 0; i < input_count; i++)
    if (inputs[i] != nullptr && is_differentiable(inputs[i]->meta->dtype)) node->inputs[i].edge = edge_of(*inputs[i]);
  SmallVector<Tensor*, 4> made;
  for (uint32_t number : item.outputs) made.push_back(tensors_[number].get());
  attach_node(node, made.data(), static_cast<uint32_t>(made.size()));
}

}  // namespace perigee
