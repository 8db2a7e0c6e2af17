// SPDX-License-Identifier: Apache-2.0
#include "tape/tape.hpp"

#include <array>

#include "builder/builder.hpp"
#include "tape/custom.hpp"

namespace perigee {
namespace {

// The contents of an input at this moment, with its history: what a second derivative needs.
TensorRef save_input(Tensor& x) {
  if (!x.is_graph()) return TensorRef::share(&x);
  TensorRef copy = alias(x);  // the object moves on when it is written to; its value stays
  copy->node = x.node;
  copy->output = x.output;
  return copy;
}

// `before`: x as it was, where the call has written to it.
void add_input(Node& node, Tensor* x, bool meta_only, bool saved, Tensor* before = nullptr) {
  node.inputs.emplace_back();
  if (x == nullptr) return;
  InputRecord& r = node.inputs.back();
  r.meta = x->meta;
  r.device = x->device;
  r.value = x->value;
  if (!meta_only && is_differentiable(x->meta->dtype)) r.edge = edge_of(*x);
  if (!saved) return;
  Tensor& contents = before != nullptr ? *before : *x;
  r.saved = save_input(contents);
  r.version = contents.storage ? contents.storage->version.load(std::memory_order_relaxed) : 0;
}

void add_output(Node& node, Tensor& y, bool hidden, bool saved, bool in_place) {
  node.outputs.emplace_back();
  OutputRecord& r = node.outputs.back();
  r.meta = y.meta;
  r.device = y.device;
  r.value = y.value;
  r.hidden = hidden;
  if (!hidden && !saved) return;
  r.saved = alias(y);
  r.version = y.storage ? y.storage->version.load(std::memory_order_relaxed) + (in_place ? 1 : 0) : 0;
}

// A tensor whose gradient is kept gets another history: the gradient that is kept from now on is that of its new
// contents.
void move_retained(Tensor& tensor, Node& to, uint32_t output) {
  auto& retained = tensor.node->rare->retained;
  for (size_t i = 0; i < retained.size(); i++) {
    if (retained[i].output != tensor.output) continue;
    rare_of(to).retained.push_back({output, std::move(retained[i].gradient)});
    retained.erase(retained.begin() + static_cast<ptrdiff_t>(i));
    return;
  }
}

void regenerate(Tensor& view) {
  ViewInfo& info = *view.view;
  Tensor& parent = *info.parent;
  Edge from = edge_of(parent);
  info.epoch = base_of(view).epoch;
  if (!from.node) {
    view.node = nullptr;
    return;
  }
  std::vector<Tensor*> inputs{&parent};
  for (TensorRef& t : info.others) inputs.push_back(t.get());
  std::vector<uint32_t> groups(info.op->info->input_count, 1);
  Tensor* output = &view;
  NodeRef node = make_node(
      {info.op, inputs.data(), static_cast<uint32_t>(inputs.size()), groups.data(), info.attrs.data(), &output, 1});
  attach_node(node, &output, 1);
}

}  // namespace

void set_hook(Tensor& tensor, uint64_t number) {
  Edge edge = edge_of(tensor);
  if (!edge.node) pg::fail(PG_E_FAILED_PRECONDITION, "this tensor does not require gradients");
  add_hook(*edge.node, edge.output, number);
}

void retain_gradient(Tensor& tensor) {
  if (tensor.is_graph())
    pg::fail(PG_E_FAILED_PRECONDITION,
             "this is a tensor of a graph, which keeps no gradient: g:gradients(loss, {...}) gives it");
  Edge edge = edge_of(tensor);
  if (!edge.node) pg::fail(PG_E_FAILED_PRECONDITION, "this tensor does not require gradients");
  if (gradient_of(tensor) == nullptr) rare_of(*edge.node).retained.push_back({edge.output, nullptr});
}

TensorRef* gradient_of(Tensor& tensor) { return tensor.node ? gradient_of(*tensor.node, tensor.output) : nullptr; }

TensorRef* gradient_of(Node& node, uint32_t output) {
  if (node.kind == NodeKind::leaf) return &node.gradient;
  if (!node.rare) return nullptr;
  for (Node::Retained& kept : node.rare->retained)
    if (kept.output == output) return &kept.gradient;
  return nullptr;
}

uint64_t next_node_sequence() {
  static std::atomic<uint64_t> counter{0};
  return counter.fetch_add(1, std::memory_order_relaxed) + 1;
}

bool is_differentiable(uint32_t dtype) { return (pg::dtype_class(dtype) & (PG_M_FLOAT | PG_M_COMPLEX)) != 0; }

Edge edge_of(Tensor& tensor) {
  if (tensor.view && !tensor.is_graph() && tensor.view->epoch != base_of(tensor).epoch) regenerate(tensor);
  return {tensor.node, tensor.output};
}

void set_requires_grad(Tensor& tensor, bool on) {
  if (on && !is_differentiable(tensor.meta->dtype))
    pg::fail_argument(pg::format("only floating point tensors can require gradients; this one is %s",
                                 pg::dtype_name(tensor.meta->dtype)));
  if (tensor.node && tensor.node->kind != NodeKind::leaf) {
    if (on) return;
    pg::fail(PG_E_FAILED_PRECONDITION,
             "requires_grad can only be switched off for leaves; :detach() a computed tensor");
  }
  tensor.requires_grad = on;
  if (!on) {
    tensor.node = nullptr;
  } else if (!tensor.node) {
    auto node = NodeRef::adopt(new Node());
    node->kind = NodeKind::leaf;
    node->graph = tensor.graph;
    node->outputs.emplace_back();
    node->outputs[0].meta = tensor.meta;
    node->outputs[0].device = tensor.device;
    tensor.node = std::move(node);
    tensor.output = 0;
  }
}

bool wants_tape(const TapeCall& call) {
  const pg_op_info& info = *call.op->info;
  if (info.traits & PG_OP_NO_GRAD) return false;
  bool needed = call.in_place && needs_gradient(*call.inputs[0]);
  uint32_t flat = 0;
  for (uint32_t i = 0; i < info.input_count && !needed; i++) {
    for (uint32_t k = 0; k < call.groups[i]; k++, flat++) {
      Tensor* x = call.inputs[flat];
      if (x != nullptr && !(info.inputs[i]->flags & PG_INPUT_META) && needs_gradient(*x)) needed = true;
    }
  }
  if (!needed) return false;
  for (uint32_t i = 0; i < call.output_count; i++)
    if (is_differentiable(call.outputs[i]->meta->dtype)) return true;
  return false;
}

NodeRef make_node(const TapeCall& call) {
  const pg_op_info& info = *call.op->info;
  auto node = NodeRef::adopt(new Node());
  node->op = call.op;
  uint32_t flat = 0;
  for (uint32_t i = 0; i < info.input_count; i++)
    for (uint32_t k = 0; k < call.groups[i]; k++, flat++) {
      bool written = call.before != nullptr && is_same_view(call.inputs[0], call.inputs[flat]);
      add_input(*node, call.inputs[flat], (info.inputs[i]->flags & PG_INPUT_META) != 0, (info.saved_inputs >> i) & 1u,
                written ? call.before : nullptr);
      if (call.values != nullptr) node->inputs.back().value = call.values[flat];
    }
  uint32_t made = 0;
  for (uint32_t i = 0; i < info.output_count && made < call.output_count; i++) {
    uint32_t count = info.outputs[i]->flags & PG_OUTPUT_VARIADIC ? call.groups[info.outputs[i]->like] : 1;
    for (uint32_t k = 0; k < count && made < call.output_count; k++, made++)
      add_output(*node, *call.outputs[made], (info.outputs[i]->flags & PG_OUTPUT_HIDDEN) != 0,
                 (info.saved_outputs >> i) & 1u, call.in_place && made == 0);
  }
  node->groups.assign(call.groups, call.groups + info.input_count);
  auto* bytes = static_cast<const uint8_t*>(call.attrs);
  node->attrs.assign(bytes, bytes + info.attr_size);
  node->graph = call.output_count > 0 ? call.outputs[0]->graph : nullptr;
  node->sequence = next_node_sequence();
  return node;
}

void attach_node(const NodeRef& node, Tensor* const* outputs, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (!is_differentiable(outputs[i]->meta->dtype)) continue;
    if (outputs[i]->node && outputs[i]->node->rare) move_retained(*outputs[i], *node, i);
    outputs[i]->node = node;
    outputs[i]->output = i;
    outputs[i]->requires_grad = false;
  }
}

ViewChain chain_of(const Tensor& view) {
  ViewChain chain;
  for (const Tensor* t = &view; t->view; t = t->view->parent.get())
    chain.insert(chain.begin(), {t->view->op, t->view->attrs, t->view->others});
  return chain;
}

void record_write(Tensor& target, const NodeRef& node) {
  Tensor& base = base_of(target);
  if (&base == &target) {
    attach_node(node, std::array<Tensor*, 1>{&target}.data(), 1);
    target.epoch++;
    return;
  }
  auto write = NodeRef::adopt(new Node());
  write->kind = NodeKind::write_view;
  add_input(*write, &base, false, false);
  write->inputs.emplace_back();
  write->inputs[1].edge = {node, 0};
  write->inputs[1].meta = target.meta;
  write->inputs[1].device = target.device;
  write->outputs.emplace_back();
  write->outputs[0].meta = base.meta;
  write->outputs[0].device = base.device;
  rare_of(*write).chain = chain_of(target);
  write->sequence = next_node_sequence();
  attach_node(write, std::array<Tensor*, 1>{&base}.data(), 1);
  base.epoch++;
}

void check_writable(Tensor& target, const char* op) {
  if (!ambient().grad_enabled) return;
  Tensor& base = base_of(target);
  if (!base.requires_grad) return;
  pg::fail(PG_E_FAILED_PRECONDITION,
           pg::format(
               "%s would write into a %s that requires gradients; wrap it in pg.no_grad(fn), or write into a :clone()",
               op, &base == &target ? "leaf" : "view of a leaf"));
}

}  // namespace perigee
