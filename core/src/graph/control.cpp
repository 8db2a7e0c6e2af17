// SPDX-License-Identifier: Apache-2.0
#include "graph/control.hpp"

#include <algorithm>
#include <array>

#include "graph/values.hpp"
#include "tensor/dims.hpp"

namespace perigee {
namespace {

const pg_input_info inputs_info{PG_SIZE(pg_input_info, written_if), PG_INPUT_VARIADIC, 0, 0, "inputs", "", nullptr};
const pg_input_info* const input_list[] = {&inputs_info};

// An operator's description as far as printing and walking a graph ask for it.
struct NamedOp {
  pg_op_info info{};
  Op op{};
  explicit NamedOp(const char* name) {
    info.size = sizeof info;
    info.name = name;
    info.doc = "";
    info.category = "control";
    info.input_count = 1;
    info.inputs = input_list;
    op.id = UINT32_MAX;
    op.info = &info;
    op.variadic = true;
  }
};

bool is_local(const Graph& body, int64_t dimension) {
  for (int64_t symbol : dim_symbols(dimension))
    if (std::find(body.made_symbols.begin(), body.made_symbols.end(), symbol) != body.made_symbols.end()) return true;
  return false;
}

// The description of output k of a node in g.
MetaRef output_meta(Graph& g, const Control& c, const std::string& name, uint32_t k) {
  int64_t shape[PG_MAX_RANK];
  const Meta* first = nullptr;
  const bool stacked = c.is_stacked(k);
  for (const Control::Body& body : c.bodies) {
    if (k >= body.results.size() || body.results[k] == Control::none) continue;
    if (c.kind == ControlKind::loop && &body == &c.bodies[0]) continue;  // the condition
    const Meta& m = *body.graph->values[body.results[k]].meta;
    const uint32_t axis = stacked ? 1 : 0;
    if (m.rank + axis > PG_MAX_RANK) pg::fail_argument(pg::format("an output has more than %d axes", PG_MAX_RANK));
    for (uint32_t i = 0; i < m.rank; i++) {
      int64_t& size = shape[i + axis];
      bool differs = first != nullptr && size != m.shape[i];
      if (first == nullptr) size = m.shape[i];
      if (differs || is_local(*body.graph, m.shape[i])) size = new_symbol(g, name + "_size");
    }
    first = &m;
  }
  if (stacked) shape[0] = c.length;
  return intern_meta(first->dtype, first->rank + (stacked ? 1 : 0), shape);
}

Device* output_device(const Control& c, uint32_t k) {
  for (auto body = c.bodies.rbegin(); body != c.bodies.rend(); ++body)
    if (k < body->results.size() && body->results[k] != Control::none)
      return body->graph->values[body->results[k]].device;
  return nullptr;
}

TensorRef add_output(Graph& g, GraphNode& n, uint32_t index, uint32_t k) {
  const Control& c = *n.control;
  uint32_t id = add_value(g, ValueKind::node, output_meta(g, c, n.name, k), output_device(c, k),
                          k == 0 ? n.name : free_name(g, n.name + "." + std::to_string(k + 1)));
  g.values[id].node = index;
  n.outputs.push_back(id);
  return tensor_of(g, id);
}

}  // namespace

const char* control_name(ControlKind kind) {
  static constexpr std::array<const char*, 3> names{"cond", "scan", "while_loop"};
  return names[static_cast<size_t>(kind)];
}

const Op& control_op(ControlKind kind) {
  static const auto* ops =
      new std::array<NamedOp, 3>{NamedOp(control_name(ControlKind::cond)), NamedOp(control_name(ControlKind::scan)),
                                 NamedOp(control_name(ControlKind::loop))};
  const NamedOp& named = (*ops)[static_cast<size_t>(kind)];
  return named.op;
}

std::string reserve_name(Graph& g, const std::string& wanted) {
  std::string name = free_name(g, scoped(wanted));
  g.names[name] = UINT32_MAX;
  return name;
}

uint32_t add_control(Graph& g, Control control, const std::string& name, Tensor* const* inputs, uint32_t input_count,
                     std::vector<TensorRef>& outputs) {
  if (g.closed) pg::fail(PG_E_FAILED_PRECONDITION, "the graph around is not being recorded any more");
  GraphNode node;
  node.op = &control_op(control.kind);
  node.name = name;
  node.origin = ambient().origin;
  node.after = g.after;
  node.groups = {input_count};
  for (uint32_t i = 0; i < input_count; i++) {
    TensorRef local = take_in(g, *inputs[i]);
    node.inputs.push_back(graph_value_now(*local));
    if (control.steps > 0 && i == control.carries) control.length = local->meta->shape[0];
  }
  bool ordered = false;
  for (Control::Body& body : control.bodies) {
    body.graph->closed = true;
    body.graph->parent = GraphRef::share(&g);
    body.graph->taken.clear();
    body.graph->taken_as.clear();
    body.graph->transfers.clear();
    ordered |= !body.graph->ordered.empty();
  }
  node.device = output_device(control, 0);
  if (node.device == nullptr) node.device = &default_device();
  const auto count = static_cast<uint32_t>(control.step_body().results.size());
  node.control = std::make_shared<Control>(std::move(control));
  const auto index = static_cast<uint32_t>(g.nodes.size());
  for (uint32_t k = 0; k < count; k++) outputs.push_back(add_output(g, node, index, k));
  if (ordered) g.ordered.push_back(index);
  g.nodes.push_back(std::move(node));
  return index;
}

TensorRef keep_value(Graph& g, uint32_t node, uint32_t body, Tensor& inner) {
  GraphNode& n = g.nodes.at(node);
  Control& c = *n.control;
  Control::Body& of = c.bodies.at(body);
  if (inner.graph.get() != of.graph.get()) pg::fail(PG_E_INTERNAL, "a value of another body");
  for (uint32_t k = 0; k < of.results.size(); k++)
    if (of.results[k] == inner.value && (c.kind == ControlKind::cond || c.is_stacked(k)))
      return tensor_of(g, n.outputs[k]);
  if (c.kind == ControlKind::loop && c.length == 0) c.length = new_symbol(g, n.name + "_rounds");
  const auto k = static_cast<uint32_t>(n.outputs.size());
  for (Control::Body& b : c.bodies) b.results.resize(std::max<size_t>(b.results.size(), k), Control::none);
  of.results.push_back(inner.value);
  for (Control::Body& b : c.bodies) b.results.resize(k + 1, Control::none);
  return add_output(g, n, node, k);
}

}  // namespace perigee
