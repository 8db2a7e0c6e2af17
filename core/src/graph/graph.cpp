// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.hpp"

#include <algorithm>

#include "graph/body.hpp"
#include "graph/control.hpp"
#include "graph/values.hpp"
#include "tape/tape.hpp"
#include "tensor/dims.hpp"

namespace perigee {

int64_t new_symbol(Graph& g, const std::string& name) {
  g.made_symbols.reserve(g.made_symbols.size() + 1);
  g.made_symbols.push_back(make_symbol(name));
  return g.made_symbols.back();
}

std::string scoped(const std::string& name) {
  return ambient().name_scope == nullptr ? name : std::string(ambient().name_scope) + "/" + name;
}

std::string free_name(Graph& g, const std::string& wanted) {
  const NameEntry& entry = claim_name(g, wanted);
  std::string name = entry.first;
  forget_name(g, name);
  return name;
}

NameEntry& claim_name(Graph& g, const std::string& wanted) {
  Graph::Wanted& known = g.wanted[wanted];
  if (!known.taken) {
    known.taken = true;
    auto [entry, fresh] = g.names.try_emplace(wanted, UINT32_MAX);
    if (fresh) return *entry;
  }
  for (;;) {
    auto [entry, fresh] = g.names.try_emplace(wanted + "_" + std::to_string(++known.count), UINT32_MAX);
    if (fresh) return *entry;
  }
}

void forget_name(Graph& g, const std::string& name) {
  if (auto known = g.wanted.find(name); known != g.wanted.end()) known->second.taken = false;
  g.names.erase(name);
}

uint32_t add_value(Graph& g, ValueKind kind, MetaRef meta, Device* device, NameEntry& name) {
  auto id = static_cast<uint32_t>(g.values.size());
  g.revision++;
  GraphValue& v = g.values.emplace_back();
  v.kind = kind;
  v.meta = std::move(meta);
  v.device = device;
  v.name = name.first;
  name.second = id;
  return id;
}

uint32_t add_value(Graph& g, ValueKind kind, MetaRef meta, Device* device, const std::string& name) {
  return add_value(g, kind, std::move(meta), device, *g.names.try_emplace(name, UINT32_MAX).first);
}

void make_variable(Graph& g, uint32_t value, TensorRef first) {
  GraphValue& v = g.values[value];
  v.kind = ValueKind::variable;
  v.eager = std::move(first);
  g.latest[value] = value;
  g.variables.push_back(value);
}

TensorRef tensor_of(Graph& g, uint32_t value) {
  GraphValue& v = g.values[value];
  TensorRef t = make_tensor(v.meta, nullptr, 0, v.device);
  t->graph = GraphRef::share(&g);
  t->value = value;
  t->node = v.history;
  t->output = v.output;
  return t;
}

TensorRef source_tensor(Graph& g, uint32_t value) {
  TensorRef t = tensor_of(g, value);
  if (is_differentiable(t->meta->dtype)) set_requires_grad(*t, true);
  t->requires_grad = false;  // a source of the graph, not a leaf that collects
  g.values[value].history = t->node;
  return t;
}

namespace {

// A name that was given on purpose: nothing may have it yet.
std::string own_name(Graph& g, const std::string& name) {
  std::string whole = scoped(name);
  if (g.names.count(whole)) pg::fail_argument("the graph already has a tensor named '" + whole + "'");
  return whole;
}

// Where a source is said to be: in the scope, else where the graph's things usually are, or where it was made.
void place_source(Graph& g, uint32_t id, Device& made) {
  GraphValue& v = g.values[id];
  v.wished = ambient().device >= 0 || made.accelerator;
  v.device = ambient().device >= 0                    ? &device(ambient().device)
             : made.accelerator || g.usual == nullptr ? &made
                                                      : g.usual;
  v.origin = ambient().origin;
}

// An eager tensor that is used in a graph means the variable of a layer, or is taken in by identity: runs see what it
// holds then.
uint32_t capture(Graph& g, Tensor& x) {
  if (TensorRef variable = graph_stand_in(g, x)) return variable->value;
  std::vector<uint32_t>& views = g.captured[x.storage.get()];
  for (uint32_t id : views)
    if (g.values[id].meta.get() == x.meta.get() && g.values[id].eager->offset == x.offset) return id;
  const uint32_t id = add_value(g, ValueKind::constant, x.meta, x.device, free_name(g, scoped("captured")));
  g.values[id].eager = alias(x);
  g.values[id].wished = x.device->accelerator;
  views.push_back(id);
  return id;
}

// Of an eager tensor that has no contents here only the description counts.
uint32_t describe(Graph& g, Tensor& x) {
  uint32_t id = add_value(g, ValueKind::constant, x.meta, x.device, free_name(g, scoped("described")));
  g.values[id].eager = TensorRef::share(&x);
  return id;
}

// The value of an input now. A view whose base was written to is made anew.
uint32_t value_of(Graph& g, Tensor& x, bool meta_only) {
  if (!x.is_graph()) {
    if (x.storage) return capture(g, x);
    if (meta_only) return describe(g, x);
    std::string stale = stale_reason(x);
    if (!stale.empty()) pg::fail(PG_E_FAILED_PRECONDITION, stale);
    pg::fail(PG_E_INTERNAL, "a description from outside cannot enter a graph");
  }
  if (x.graph.get() != &g) pg::fail_argument("a tensor of another graph cannot be used here");
  return graph_value_now(x);
}

// After a write, `target` (and its base) stand for the new value.
void adopt(Tensor& target, const Tensor& now) {
  Graph& g = *target.graph;
  Tensor& base = base_of(target);
  TensorRef whole;
  if (&base != &target) {
    Scoped<int32_t> there(ambient().device, base.device->id);  // whatever the scope says
    Scoped<bool> by_itself(ambient().derived, true);
    whole = write_back(chain_of(target), base, const_cast<Tensor&>(now));
  }
  const Tensor& source = whole ? *whole : now;
  // A leaf that was written to without a history stays that leaf, as in eager code.
  bool leaf = !source.node && base.node && base.node->kind == NodeKind::leaf;
  uint32_t variable = g.values[base.value].kind == ValueKind::variable ? base.value : g.values[base.value].variable;
  const uint32_t before = base.value;
  base.value = source.value;
  if (!leaf) {
    base.node = source.node;
    base.output = source.output;
  }
  base.epoch++;
  g.values[base.value].history = base.node;
  g.values[base.value].output = base.output;
  if (variable != UINT32_MAX) {
    g.values[base.value].variable = variable;
    g.latest[variable] = base.value;
    g.written.push_back({base.value, before});
  }
}

struct Recorder {
  PendingCall& call;
  Graph& g;
  const pg_op_info& info;
  GraphNode node{};  // until it is the graph's, at `index`
  uint32_t index = 0;
  SmallVector<pg_meta, 2> metas{};
  uint32_t visible = 0;

  // In a body: what lies around it enters as an argument, which nothing may write into.
  void enter_body() {
    for (uint32_t i = 0; i < call.inputs.size(); i++) {
      Tensor* x = call.inputs[i];
      if (x == nullptr) continue;
      if (!x->is_graph()) check_not_written(i);
      bool local = x->graph.get() == &g;
      if (writes_into(i) && x->is_graph() && (!local || g.values[base_of(*x).value].taken))
        pg::fail_argument(
            pg::format("would write into %s, which comes from outside of the function that is recorded: "
                       "let the function return the new value",
                       input_name(i)));
      if (local) continue;
      call.keep.push_back(take_in(g, *x, (call.input_flags(i) & PG_INPUT_META) != 0));
      call.inputs[i] = call.keep.back().get();
    }
  }

  bool writes_into(uint32_t i) const {
    return (call.input_flags(i) & PG_INPUT_MUTATES) != 0 || (call.in_place() && i == 0);
  }

  const char* input_name(uint32_t i) const {
    uint32_t declared = 0, flat = i;
    while (flat >= call.groups[declared]) flat -= call.groups[declared++];
    return info.inputs[declared]->name;
  }

  void take_inputs() {
    node.op = &call.op;
    node.device = call.device;
    node.wished = call.wished;
    node.groups = call.groups;
    node.attrs.assign(call.attrs.begin(), call.attrs.end());
    for (uint32_t i = 0; i < call.inputs.size(); i++) {
      Tensor* x = call.inputs[i];
      if (x != nullptr && !x->is_graph()) check_not_written(i);
      node.inputs.push_back(x == nullptr ? UINT32_MAX : value_of(g, *x, (call.input_flags(i) & PG_INPUT_META) != 0));
    }
  }

  // Eager tensors are constants here.
  void check_not_written(uint32_t i) const {
    if (!writes_into(i)) return;
    pg::fail_argument(
        pg::format("would write into %s, an eager tensor, which is a constant in a graph; make it a g:variable, or "
                   "the buffer of a layer",
                   input_name(i)));
  }

  void infer_outputs() {
    SmallVector<const pg_tensor*, 8> views;
    for (Tensor* x : call.inputs) views.push_back(x != nullptr ? &x->meta->view : nullptr);
    uint32_t total = output_total(call.op, call.groups.data(), &visible);
    metas.resize(total);
    infer(call.op, views.data(), static_cast<uint32_t>(views.size()), call.groups.data(), call.attrs.data(), true,
          metas.data(), total);
    if ((info.traits & PG_OP_VIEW) && call.op.shape_offset != UINT32_MAX) name_sizes();
  }

  // A view to a shape with a -1 keeps the size that this stands for: a run with a size of 0 could not tell.
  void name_sizes() {
    pg_ints list;
    std::memcpy(&list, node.attrs.data() + call.op.shape_offset, sizeof list);
    if (list.count != metas[0].rank) return;
    for (int64_t i = 0; i < list.count; i++)
      if (list.value[i] == -1) list.value[i] = metas[0].shape[i];
    std::memcpy(node.attrs.data() + call.op.shape_offset, &list, sizeof list);
  }

  void add_outputs() {
    NameEntry& name = claim_name(g, scoped(info.name));
    node.name = name.first;
    node.origin = ambient().origin;
    node.after = g.after;
    wait_for_sizes();
    index = static_cast<uint32_t>(g.nodes.size());
    uint32_t flat = 0;
    for (uint32_t i = 0; i < info.output_count; i++) {
      uint32_t count = info.outputs[i]->flags & PG_OUTPUT_VARIADIC ? call.groups[info.outputs[i]->like] : 1;
      for (uint32_t k = 0; k < count; k++, flat++) {
        pg_meta& m = metas[flat];
        // How many there are is known at run time: a new symbol.
        if (info.outputs[i]->flags & PG_OUTPUT_DYNAMIC) m.shape[0] = new_symbol(g, node.name + "_count");
        MetaRef meta = intern_meta(PG_DTYPE(m.dtype_code, m.dtype_bits), m.rank, m.shape);
        NameEntry& own = flat == 0 ? name : claim_name(g, node.name + "." + info.outputs[i]->name);
        uint32_t id = add_value(g, ValueKind::node, std::move(meta), call.device, own);
        g.values[id].node = index;
        if (info.outputs[i]->flags & PG_OUTPUT_DYNAMIC) g.told.emplace(m.shape[0], id);
        node.outputs.push_back(id);
      }
    }
    for (uint32_t i = 0; i < call.inputs.size(); i++) {
      if (!(call.input_flags(i) & PG_INPUT_MUTATES) || call.inputs[i] == nullptr) continue;
      Tensor& x = *call.inputs[i];
      NameEntry& own = claim_name(g, g.values[node.inputs[i]].name + "'");
      uint32_t id = add_value(g, ValueKind::node, x.meta, x.device, own);
      g.values[id].node = index;
      node.writes.emplace_back(i, id);
    }
    if (info.effect == PG_EFFECT_ORDERED) g.ordered.push_back(index);
    g.nodes.push_back(std::move(node));
    g.revision++;
  }

  // Sizes among the attributes that only a run tells: what tells them runs before.
  void wait_for_sizes() {
    if (!call.op.has_dims || g.told.empty()) return;
    for (uint32_t i = 0; i < info.attr_count; i++) {
      if (info.attrs[i]->kind != PG_ATTR_DIMS) continue;
      pg_ints list;
      std::memcpy(&list, node.attrs.data() + info.attrs[i]->offset, sizeof list);
      for (int64_t k = 0; k < list.count; k++) {
        for (int64_t symbol : dim_symbols(list.value[k])) {
          auto it = g.told.find(symbol);
          if (it == g.told.end()) continue;
          std::vector<uint32_t>& after = node.after;
          const bool known = std::find(after.begin(), after.end(), it->second) != after.end() ||
                             std::find(node.inputs.begin(), node.inputs.end(), it->second) != node.inputs.end();
          if (!known) after.push_back(it->second);
        }
      }
    }
  }

  void finish(TensorRef* outputs, uint32_t output_count) {
    const GraphNode& own = g.nodes[index];
    SmallVector<TensorRef, 4> made;
    SmallVector<Tensor*, 4> raw;
    for (uint32_t id : own.outputs) {
      made.push_back(tensor_of(g, id));
      raw.push_back(made.back().get());
    }
    TapeCall noted{&call.op,          call.inputs.data(), static_cast<uint32_t>(call.inputs.size()), call.groups.data(),
                   call.attrs.data(), raw.data(),         static_cast<uint32_t>(raw.size())};
    noted.values = own.inputs.data();
    if (ambient().grad_enabled && wants_tape(noted)) attach_node(make_node(noted), raw.data(), visible);
    for (uint32_t i = 0; i < made.size(); i++) {
      g.values[own.outputs[i]].history = made[i]->node;
      g.values[own.outputs[i]].output = made[i]->output;
    }
    const std::vector<std::pair<uint32_t, uint32_t>> writes = own.writes;  // recording what they ask for moves nodes
    for (auto& [input, id] : writes) adopt(*call.inputs[input], *tensor_of(g, id));
    if ((info.traits & PG_OP_VIEW) && call.inputs[0]->is_graph()) remember_view(*made[0]);
    if (call.in_place()) {
      adopt(*call.inputs[0], *made[0]);
      made[0] = TensorRef::share(call.inputs[0]);
    }
    for (uint32_t i = 0; i < output_count; i++) outputs[i] = made[i];
  }

  void remember_view(Tensor& y) {
    y.view = std::make_unique<ViewInfo>();
    y.view->parent = TensorRef::share(call.inputs[0]);
    y.view->op = &call.op;
    y.view->attrs.assign(call.attrs.begin(), call.attrs.end());
    for (size_t i = 1; i < call.inputs.size(); i++) y.view->others.push_back(describe_only(*call.inputs[i]));
    y.view->epoch = base_of(*call.inputs[0]).epoch;
  }
};

TransferKey transfer_key(Graph& g, PendingCall& call) {
  Tensor& x = *call.inputs[0];
  uint32_t value = value_of(g, x, false);
  return {value, call.device->id, ambient().grad_enabled ? edge_of(x) : Edge{}};
}

}  // namespace

std::atomic<uint32_t>& ref_count(Graph* graph) { return graph->refs; }
void destroy(Graph* graph) {
  std::vector<int64_t> symbols = std::move(graph->made_symbols);
  delete graph;  // and all tensors whose sizes they are: a tensor of a graph keeps it
  for (int64_t symbol : symbols) release_symbol(symbol);
}

void Graph::forget_history() {
  transfers.clear();
  for (CalledTensor& c : called) c.now = nullptr;
  taken.clear();
  taken_as.clear();
  for (GraphValue& v : values) v.history = nullptr;
  for (GraphNode& n : nodes)
    if (n.control)
      for (Control::Body& body : n.control->bodies) {
        body.graph->forget_history();
        body.graph->parent = nullptr;
      }
}

uint32_t graph_value_now(Tensor& x) {
  if (!x.view || x.view->epoch == base_of(x).epoch) return x.value;
  Scoped<int32_t> there(ambient().device, base_of(x).device->id);
  Scoped<bool> by_itself(ambient().derived, true);
  Scoped<Graph*> own(ambient().graph, x.graph.get());
  TensorRef again = apply_chain(chain_of(x), base_of(x));
  x.value = again->value;
  x.node = again->node;
  x.output = again->output;
  x.view->epoch = base_of(x).epoch;
  return x.value;
}

TensorRef graph_placeholder(Graph& g, const std::string& name, uint32_t dtype, uint32_t rank, const int64_t* shape,
                            const char* const* symbols) {
  std::string whole = own_name(g, name);
  int64_t dims[PG_MAX_RANK];
  if (rank > PG_MAX_RANK) pg::fail_argument(pg::format("rank %u is more than %d", rank, PG_MAX_RANK));
  for (uint32_t i = 0; i < rank; i++) {
    if (symbols == nullptr || symbols[i] == nullptr) {
      dims[i] = shape[i];
      continue;
    }
    auto [it, fresh] = g.symbols.try_emplace(symbols[i], 0);
    if (fresh) it->second = new_symbol(g, symbols[i]);
    dims[i] = it->second;
  }
  MetaRef meta = intern_meta(dtype, rank, dims);
  uint32_t id = add_value(g, ValueKind::placeholder, meta, &default_device(), whole);
  place_source(g, id, default_device());
  g.values[id].named = true;
  return source_tensor(g, id);
}

TensorRef graph_variable(Graph& g, const std::string& name, Tensor& value, Tensor* beside) {
  TensorRef other = beside != nullptr ? graph_variable_of(g, *beside) : nullptr;
  if (beside != nullptr && !other) pg::fail_argument("what '" + name + "' is to be beside is no variable of the graph");
  std::string whole = own_name(g, name);
  uint32_t id = add_value(g, ValueKind::variable, dense_meta(*value.meta, value.meta->dtype), value.device, whole);
  place_source(g, id, *value.device);
  if (other) {
    g.values[id].wished = g.values[other->value].wished;
    g.values[id].device = g.values[other->value].device;
  }
  g.values[id].named = true;
  make_variable(g, id, copy_dense(value, value.meta->dtype));
  return source_tensor(g, id);
}

TensorRef graph_constant(Graph& g, const std::string& name, Tensor& value) {
  std::string whole = name.empty() ? free_name(g, scoped("constant")) : own_name(g, name);
  uint32_t id = add_value(g, ValueKind::constant, dense_meta(*value.meta, value.meta->dtype), value.device, whole);
  place_source(g, id, *value.device);
  g.values[id].named = !name.empty();
  g.values[id].eager = copy_dense(value, value.meta->dtype);
  return tensor_of(g, id);
}

TensorRef graph_take(Graph& g, ValueKind kind, const std::string& name, TensorRef value) {
  if (g.names.count(name)) pg::fail_argument("the graph already has a tensor named '" + name + "'");
  uint32_t id = add_value(g, kind, value->meta, value->device, name);
  if (kind == ValueKind::variable) {
    make_variable(g, id, std::move(value));
    return source_tensor(g, id);
  }
  g.values[id].eager = std::move(value);
  return tensor_of(g, id);
}

void graph_rename(Graph& g, uint32_t value, const std::string& name) {
  auto [it, fresh] = g.names.try_emplace(name, value);
  GraphValue& v = g.values[value];
  if (!fresh && v.name != name) pg::fail_argument("the graph already has a tensor named '" + name + "'");
  if (v.name != name) forget_name(g, v.name);
  v.name = name;
  if (v.kind != ValueKind::node) return;
  GraphNode& n = g.nodes[v.node];
  if (!n.outputs.empty() && n.outputs[0] == value) n.name = name;
}

TensorRef graph_find(Graph& g, const std::string& name) {
  auto it = g.names.find(name);
  if (it == g.names.end()) {
    std::string known;
    for (const GraphValue& v : g.values)
      if (v.kind != ValueKind::node && known.size() < 200) known += (known.empty() ? "" : ", ") + v.name;
    pg::fail(PG_E_NOT_FOUND, "the graph has no tensor named '" + name + "'; its inputs and variables are: " + known);
  }
  if (it->second == UINT32_MAX) pg::fail(PG_E_NOT_FOUND, "'" + name + "' has no output");
  auto latest = g.latest.find(it->second);
  return tensor_of(g, latest == g.latest.end() ? it->second : latest->second);
}

void graph_set_name(Graph& g, Tensor& tensor, const std::string& name) {
  if (!tensor.is_graph() || tensor.graph.get() != &g) pg::fail_argument("the tensor is not part of this graph");
  auto [it, fresh] = g.names.try_emplace(name, tensor.value);
  if (!fresh && it->second != tensor.value) pg::fail_argument("the graph already has a tensor named '" + name + "'");
  GraphValue& v = g.values[tensor.value];
  g.revision++;
  if (!v.named && v.name != name) forget_name(g, v.name);
  v.name = name;
  v.named = true;
  if (v.kind != ValueKind::node) return;
  GraphNode& n = g.nodes[v.node];
  if (!n.outputs.empty() && n.outputs[0] == tensor.value) n.name = name;
}

const std::string& graph_name(Tensor& tensor) {
  if (!tensor.is_graph()) pg::fail_argument("the tensor is not part of a graph");
  return tensor.graph->values[tensor.value].name;
}

void graph_note_custom(const Tensor& x) {
  if (!x.is_graph() || !x.node || x.graph->values[x.value].history) return;
  Graph& g = *x.graph;
  std::vector<uint32_t>& by = g.custom[x.value];
  by.clear();
  for (const InputRecord& input : x.node->inputs) {
    const bool own = input.edge.node && input.value < g.values.size() && input.value != x.value &&
                     g.values[input.value].meta.get() == input.meta.get() && g.is_linked(input.value);
    if (own) by.push_back(input.value);
  }
}

uint32_t graph_after(Graph& g, Tensor* const* tensors, uint32_t count) {
  std::vector<uint32_t> values;
  for (uint32_t i = 0; i < count; i++) {
    TensorRef variable = graph_stand_in(g, *tensors[i]);  // of a layer
    Tensor& x = variable ? *variable : *tensors[i];
    if (!x.is_graph()) continue;  // is there before anything runs
    if (x.graph.get() != &g)
      pg::fail_argument(
          pg::format("dependency %u is a tensor of another graph, or from outside of the function that is "
                     "recorded",
                     i + 1));
    const uint32_t value = graph_value_now(x);
    if (g.values[value].kind == ValueKind::node) values.push_back(value);
  }
  const auto before = static_cast<uint32_t>(g.after.size());
  g.after.insert(g.after.end(), values.begin(), values.end());
  return before;
}

TensorRef graph_capture(Graph& g, Tensor& x) {
  TensorRef taken = tensor_of(g, capture(g, x));
  Edge history = edge_of(x);
  taken->node = history.node;
  taken->output = history.output;
  return taken;
}

TensorRef graph_after_writes(Graph& g, Tensor& tensor, uint32_t index, Tensor* also) {
  std::vector<uint32_t> before;
  for (size_t i = index; i < g.written.size(); i++) before.push_back(g.written[i].value);
  if (also != nullptr && g.values[value_of(g, *also, false)].kind == ValueKind::node) before.push_back(also->value);
  uint32_t last = 0, own = UINT32_MAX;
  for (uint32_t id : before) last = std::max(last, g.values[id].node);
  TensorRef made = TensorRef::share(&tensor);
  if (before.empty()) return made;
  if (g.values[tensor.value].kind == ValueKind::node) own = g.values[tensor.value].node;
  if (own == UINT32_MAX || own < last) {  // nodes run in the order recorded
    made = emit_clone(tensor);
    own = g.values[made->value].node;
  }
  for (uint32_t id : before) {
    std::vector<uint32_t>& after = g.nodes[own].after;
    bool known = g.values[id].node == own || std::find(after.begin(), after.end(), id) != after.end();
    if (!known) after.push_back(id);
  }
  g.revision++;
  return made;
}

void graph_forget_writes(Graph& g, uint32_t index) {
  for (size_t i = g.written.size(); i-- > index;) {
    const WrittenValue& w = g.written[i];
    g.latest[g.values[w.value].variable] = w.before;
  }
}

uint32_t graph_bind(Graph& g, uint32_t first, const std::string& attr, Tensor* value) {
  uint32_t id = UINT32_MAX, count = 0;
  if (value != nullptr) {
    id = value_of(g, *value, false);
    if (value->meta->dtype != PG_F64 || value->meta->rank != 0)
      pg::fail_argument(pg::format("%s is %s %s; expected float64 []", attr.c_str(), pg::dtype_name(value->meta->dtype),
                                   shape_text(*value->meta).c_str()));
  }
  for (uint32_t index = first; index < g.nodes.size(); index++) {
    GraphNode& n = g.nodes[index];
    for (uint32_t i = 0; i < n.op->info->attr_count; i++) {
      const pg_attr_info& a = *n.op->info->attrs[i];
      const bool number = a.kind == PG_ATTR_FLOAT || a.kind == PG_ATTR_NUMBER;
      if (!number || !(a.flags & PG_ATTR_RUNTIME) || attr != a.name) continue;
      count++;
      if (value == nullptr) continue;
      if (g.values[id].kind == ValueKind::node && g.values[id].node >= index)
        pg::fail(PG_E_INTERNAL, attr + " is computed after the node that it is bound to");
      if (a.kind == PG_ATTR_NUMBER) {  // a float from now on: a run writes the double that it begins with
        const pg_number any{};
        std::memcpy(n.attrs.data() + a.offset, &any, sizeof any);
      }
      n.bound.emplace_back(a.offset, id);
    }
  }
  return count;
}

void record(PendingCall& call, TensorRef* outputs, uint32_t output_count) {
  Graph* g = &target_of(call);
  Recorder r{call, *g, *call.op.info};
  if (g->parent) r.enter_body();
  bool transfer = call.op.role == Role::transfer && call.inputs[0]->is_graph() && output_count == 1;
  if (transfer) {  // one copy per (tensor, device)
    auto it = g->transfers.find(transfer_key(*g, call));
    if (it != g->transfers.end()) {
      outputs[0] = tensor_of(*g, it->second);  // a fresh one: what has been given out may have been written to
      return;
    }
  }
  r.take_inputs();
  r.infer_outputs();
  r.add_outputs();
  r.finish(outputs, output_count);
  if (transfer) g->transfers[transfer_key(*g, call)] = outputs[0]->value;
}

}  // namespace perigee
