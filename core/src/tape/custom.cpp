// SPDX-License-Identifier: Apache-2.0
#include "tape/custom.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_set>

#include "builder/builder.hpp"

namespace perigee {
namespace {

template <class Record>
void describe(Record& record, const Tensor& tensor) {
  record.meta = tensor.meta;
  record.device = tensor.device;
  record.value = tensor.value;
  if (tensor.storage) record.version = tensor.storage->version.load(std::memory_order_relaxed);
}

}  // namespace

uint64_t record_custom(Tensor* const* inputs, uint32_t input_count, TensorRef* outputs, uint32_t output_count,
                       const CustomNode& how) {
  auto node = NodeRef::adopt(new Node());
  node->kind = NodeKind::custom;
  node->pure = how.pure;
  node->sequence = next_node_sequence();
  const uint64_t number = how.number != 0 ? how.number : node->sequence;
  auto* bytes = reinterpret_cast<const uint8_t*>(&number);
  node->attrs.assign(bytes, bytes + sizeof number);
  for (uint32_t i = 0; i < input_count; i++) {
    InputRecord& record = node->inputs.emplace_back();
    describe(record, *inputs[i]);
    if (is_differentiable(inputs[i]->meta->dtype)) record.edge = edge_of(*inputs[i]);
  }
  std::vector<Tensor*> raw;
  for (uint32_t i = 0; i < output_count; i++) {
    const Tensor& y = *outputs[i];  // a view's history is its base's, a leaf is its own
    if (!how.rehang || y.view || !y.node || y.node->kind == NodeKind::leaf) outputs[i] = alias(*outputs[i]);
    describe(node->outputs.emplace_back(), *outputs[i]);
    raw.push_back(outputs[i].get());
  }
  if (output_count > 0) node->graph = raw[0]->graph;
  attach_node(node, raw.data(), output_count);
  return number;
}

std::vector<TensorRef> leaves_of(Tensor* const* tensors, uint32_t count, Tensor* const* except, uint32_t except_count) {
  std::vector<TensorRef> leaves;
  std::vector<Node*> waiting;
  std::unordered_set<Node*> seen;
  auto meet = [&](const Edge& edge) {
    if (edge.node && seen.insert(edge.node.get()).second) waiting.push_back(edge.node.get());
  };
  for (uint32_t i = 0; i < except_count; i++) seen.insert(edge_of(*except[i]).node.get());
  for (uint32_t i = 0; i < count; i++) meet(edge_of(*tensors[i]));
  while (!waiting.empty()) {
    Node* node = waiting.back();
    waiting.pop_back();
    for (InputRecord& input : node->inputs) meet(input.edge);
    if (node->kind != NodeKind::leaf) continue;
    TensorRef leaf = make_tensor(node->outputs[0].meta, nullptr, 0, node->outputs[0].device);
    leaf->graph = node->graph;
    leaf->node = NodeRef::share(node);
    leaf->requires_grad = true;
    leaves.push_back(std::move(leaf));
  }
  return leaves;
}

}  // namespace perigee
