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

// Whether g or a graph around it made the symbol. What is not is of a body, or of one that this one was recorded in.
bool is_known(const Graph& g, int64_t symbol) {
  for (const Graph* around = &g; around != nullptr; around = around->parent.get())
    if (std::find(around->made_symbols.begin(), around->made_symbols.end(), symbol) != around->made_symbols.end())
      return true;
  return false;
}

bool is_local(const Graph& g, int64_t dimension) {
  std::vector<int64_t> symbols = dim_symbols(dimension);
  return std::any_of(symbols.begin(), symbols.end(), [&](int64_t symbol) { return !is_known(g, symbol); });
}

std::string kind_of(const Meta& m) { return std::string(pg::dtype_name(m.dtype)) + " " + shape_text(m); }

// Whether what is like `got` can stand where `want` is, of one position of its first axis if `step`.
bool can_stand_for(const GraphValue& want, const GraphValue& got, bool step) {
  const Meta &w = *want.meta, &m = *got.meta;
  const uint32_t first = step ? 1 : 0;
  bool fits = w.dtype == m.dtype && w.rank == m.rank + first && want.device == got.device;
  for (uint32_t i = 0; fits && i < m.rank; i++) fits = dim_equal(w.shape[i + first], m.shape[i]);
  return fits;
}

void check_arguments(const Graph& g, const GraphNode& n, const Control& c, const Control::Body& body) {
  if (body.arguments.size() != n.inputs.size()) pg::fail_argument("a body does not say of each input what it is there");
  std::vector<uint8_t> given(body.graph->values.size(), 0);
  for (uint32_t i = 0; i < n.inputs.size(); i++) {
    const uint32_t id = body.arguments[i];
    const bool carried = c.kind != ControlKind::cond && i < c.carries;
    if (id == Control::none && carried) pg::fail_argument(pg::format("%s lacks input %u", body.name.c_str(), i + 1));
    if (id == Control::none) continue;
    const GraphValue& inner = body.graph->values.at(id);
    if (inner.kind != ValueKind::placeholder || std::exchange(given[id], 1))
      pg::fail_argument(pg::format("input %u is no argument of %s, or it is one twice", i + 1, body.name.c_str()));
    const GraphValue& outer = g.values[n.inputs[i]];
    if (!can_stand_for(outer, inner, i >= c.carries && i < c.carries + c.steps))
      pg::fail_argument(pg::format("input %u is %s, but %s takes %s", i + 1, kind_of(*outer.meta).c_str(),
                                   body.name.c_str(), kind_of(*inner.meta).c_str()));
  }
  for (uint32_t id = 0; id < given.size(); id++)
    if (body.graph->values[id].kind == ValueKind::placeholder && !given[id])
      pg::fail_argument(
          pg::format("no input is the argument %s of %s", body.graph->values[id].name.c_str(), body.name.c_str()));
}

// What the bodies give for output k, of which there must be one; all of one kind.
void check_result(const Graph& g, const GraphNode& n, const Control& c, uint32_t k) {
  const GraphValue* first = nullptr;
  for (const Control::Body& body : c.bodies) {
    if (c.kind == ControlKind::loop && &body == &c.bodies[0]) continue;
    if (k >= body.results.size() || body.results[k] == Control::none) continue;
    const GraphValue& v = body.graph->values.at(body.results[k]);
    const bool alike = first == nullptr || (v.meta->dtype == first->meta->dtype && v.meta->rank == first->meta->rank &&
                                            v.device == first->device);
    const bool keeps = c.kind == ControlKind::cond || k >= c.carries || can_stand_for(g.values[n.inputs[k]], v, false);
    if (!alike || !keeps)
      pg::fail_argument(pg::format("output %u of %s is %s; expected what stands in its place elsewhere", k + 1,
                                   body.name.c_str(), kind_of(*v.meta).c_str()));
    first = &v;
  }
  if (first == nullptr) pg::fail_argument(pg::format("no body gives output %u", k + 1));
}

// Runs count on this, whoever made the node.
void check_form(const Graph& g, const GraphNode& n, const Control& c) {
  const bool cond = c.kind == ControlKind::cond, loop = c.kind == ControlKind::loop;
  if (c.bodies.size() != (c.kind == ControlKind::scan ? 1 : 2)) pg::fail_argument("it has another number of bodies");
  if (static_cast<uint64_t>(c.carries) + c.steps > n.inputs.size() || (c.kind != ControlKind::scan && c.steps > 0) ||
      (cond && (c.carries > 0 || n.inputs.empty())))
    pg::fail_argument("it has too few inputs");
  if (cond && g.values[n.inputs[0]].meta->dtype != PG_B8) pg::fail_argument("what decides is no bool");
  if (!PG_DIM_IS_SYMBOLIC(c.length) && c.length < 0) pg::fail_argument("its number of steps is less than 0");
  for (const Control::Body& body : c.bodies) check_arguments(g, n, c, body);
  const auto count = static_cast<uint32_t>(c.bodies.back().results.size());
  if (count < c.carries) pg::fail_argument("it hands on more than its body gives");
  for (uint32_t k = 0; k < count; k++) check_result(g, n, c, k);
  const Control::Body& condition = c.bodies[0];
  if (!loop && condition.results.size() != count) pg::fail_argument("its bodies give other numbers of results");
  if (!loop) return;
  for (uint32_t k = 1; k < condition.results.size(); k++)
    if (condition.results[k] != Control::none) pg::fail_argument("its condition gives more than one tensor");
  if (condition.results.empty() || condition.results[0] == Control::none ||
      condition.graph->values.at(condition.results[0]).meta->dtype != PG_B8)
    pg::fail_argument("its condition gives no bool");
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
      if (differs || is_local(g, m.shape[i])) size = new_symbol(g, name + "_size");
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

// known: symbols of g that there were before the node.
TensorRef add_output(Graph& g, GraphNode& n, uint32_t index, uint32_t k, size_t known) {
  const Control& c = *n.control;
  uint32_t id = add_value(g, ValueKind::node, output_meta(g, c, n.name, k), output_device(c, k),
                          k == 0 ? n.name : free_name(g, n.name + "." + std::to_string(k + 1)));
  g.values[id].node = index;
  // Sizes that this node is the first to have, and nobody else tells.
  const Meta& m = *g.values[id].meta;
  for (uint32_t i = 0; i < m.rank; i++)
    if (std::find(g.made_symbols.begin() + static_cast<ptrdiff_t>(known), g.made_symbols.end(), m.shape[i]) !=
        g.made_symbols.end())
      g.told.emplace(m.shape[i], id);
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
    control.linked.push_back(local->node ? 1 : 0);
    if (control.steps > 0 && i == control.carries) control.length = local->meta->shape[0];
  }
  check_form(g, node, control);
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
  control.own = count;
  const size_t known = g.made_symbols.size();
  if (control.kind == ControlKind::loop && count > control.carries && control.length == 0)
    control.length = new_symbol(g, name + "_rounds");
  node.control = std::make_shared<Control>(std::move(control));
  const auto index = static_cast<uint32_t>(g.nodes.size());
  for (uint32_t k = 0; k < count; k++) outputs.push_back(add_output(g, node, index, k, known));
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
  const size_t known = g.made_symbols.size();
  if (c.kind == ControlKind::loop && c.length == 0) c.length = new_symbol(g, n.name + "_rounds");
  const auto k = static_cast<uint32_t>(n.outputs.size());
  for (Control::Body& b : c.bodies) {
    b.results.resize(k + 1, Control::none);
    b.linked.resize(k + 1, 0);
  }
  of.results[k] = inner.value;
  of.linked[k] = inner.node ? 1 : 0;
  return add_output(g, n, node, k, known);
}

}  // namespace perigee
