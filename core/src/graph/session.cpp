// SPDX-License-Identifier: Apache-2.0
#include "graph/session.hpp"

#include "base/log.hpp"
#include "tape/tape.hpp"

namespace perigee {

struct Session::Run {
  Graph& g;
  std::map<uint32_t, TensorRef>& variables;
  bool soft;
  std::vector<uint8_t>& moved;
  Bindings bindings{};
  std::vector<TensorRef> values{};
  std::vector<uint32_t> uses{};     // readers of a value that are still to come
  std::vector<uint8_t> needed{};    // by node
  std::vector<uint8_t> borrowed{};  // by value: memory that is not this run's to write into

  void bind(uint32_t id, Tensor& value) {
    GraphValue& v = g.values[id];
    if (v.meta->rank != value.meta->rank || v.meta->dtype != value.meta->dtype)
      pg::fail_argument(pg::format("'%s' was fed %s %s; expected %s %s", v.name.c_str(),
                                   pg::dtype_name(value.meta->dtype), shape_text(*value.meta).c_str(),
                                   pg::dtype_name(v.meta->dtype), shape_text(*v.meta).c_str()));
    for (uint32_t i = 0; i < v.meta->rank; i++) {
      int64_t want = v.meta->shape[i], got = value.meta->shape[i];
      if (PG_DIM_IS_SYMBOLIC(want) && v.kind == ValueKind::placeholder)
        want = bindings.try_emplace(want, got).first->second;
      if (!PG_DIM_IS_SYMBOLIC(want) && want != got)
        pg::fail_argument(pg::format(
            "'%s' was fed shape %s; expected %s%s", v.name.c_str(), shape_text(*value.meta).c_str(),
            shape_text(*v.meta).c_str(),
            want == v.meta->shape[i]
                ? ""
                : pg::format(" with %s = %lld", dim_text(v.meta->shape[i]).c_str(), static_cast<long long>(want))
                      .c_str()));
    }
    values[id] = value.device == v.device ? TensorRef::share(&value) : move_to(value, *v.device);
    borrowed[id] = values[id].get() == &value;
  }

  void need(uint32_t id) {
    std::vector<uint32_t> open{id};
    while (!open.empty()) {
      uint32_t next = open.back();
      open.pop_back();
      uses[next]++;
      if (values[next] || g.values[next].kind != ValueKind::node) continue;
      GraphNode& n = g.nodes[g.values[next].node];
      if (std::exchange(needed[g.values[next].node], 1)) continue;
      for (uint32_t input : n.inputs)
        if (input != UINT32_MAX) open.push_back(input);
    }
  }

  TensorRef& value(uint32_t id) {
    GraphValue& v = g.values[id];
    if (values[id]) return values[id];
    if (v.kind == ValueKind::placeholder)
      pg::fail(PG_E_FAILED_PRECONDITION, "placeholder '" + v.name + "' was not fed");
    if (v.kind == ValueKind::variable) values[id] = variables.at(id);
    if (v.kind == ValueKind::constant) values[id] = v.eager;
    borrowed[id] = 1;
    return values[id];
  }

  // Symbols in attributes get this run's sizes.
  std::vector<uint8_t> attrs_of(const GraphNode& n) {
    std::vector<uint8_t> attrs = n.attrs;
    if (!n.op->has_dims) return attrs;
    for (uint32_t i = 0; i < n.op->info->attr_count; i++) {
      const pg_attr_info& a = *n.op->info->attrs[i];
      if (a.kind != PG_ATTR_DIMS) continue;
      pg_ints list;
      std::memcpy(&list, attrs.data() + a.offset, sizeof list);
      for (int64_t k = 0; k < list.count; k++) list.value[k] = dim_value(list.value[k], bindings);
      std::memcpy(attrs.data() + a.offset, &list, sizeof list);
    }
    return attrs;
  }

  void call_node(const GraphNode& n, const std::vector<Tensor*>& inputs, std::vector<TensorRef>& outputs,
                 Device* here) {
    Scoped<int32_t> place(ambient().device, here != nullptr ? here->id : -1);
    call(*n.op, inputs.data(), static_cast<uint32_t>(inputs.size()), n.groups.data(), attrs_of(n).data(),
         emit_functional, outputs.data(), static_cast<uint32_t>(outputs.size()));
  }

  // On its device, or, where that has no kernel and soft placement allows it, on the default one, and the results back.
  void place_node(uint32_t index, const std::vector<Tensor*>& inputs, std::vector<TensorRef>& outputs) {
    const GraphNode& n = g.nodes[index];
    bool transfer = n.op->role == Role::transfer;
    Device& other = default_device();
    bool movable = soft && !transfer && n.device != &other;
    if (!movable || !moved[index]) {
      try {
        return call_node(n, inputs, outputs, n.inputs.empty() || transfer ? n.device : nullptr);
      } catch (const pg::Error& e) {
        if (!movable || e.code != PG_E_NOT_SUPPORTED) throw;
      }
    }
    std::vector<Tensor*> there = inputs;  // what the node writes into goes to the other device, and the result back
    std::vector<TensorRef> written;
    for (auto& [input, id] : n.writes) {
      written.push_back(move_to(*inputs[input], other));
      there[input] = written.back().get();
    }
    call_node(n, there, outputs, &other);
    for (TensorRef& y : outputs) y = move_to(*y, *n.device);
    for (size_t i = 0; i < written.size(); i++) values[n.writes[i].second] = move_to(*written[i], *n.device);
    if (std::exchange(moved[index], 1) == 0)
      write_log(PG_LOG_WARNING, n.name + ": (" + n.op->info->name + "): " + other.name + ", since " + n.device->name +
                                    " has no kernel for it");
  }

  // How many of a node's outputs to ask for: hidden ones only if somebody reads them.
  size_t outputs_of(const GraphNode& n) const {
    uint32_t visible = 0;
    if (!n.op->hides) return n.outputs.size();
    output_total(*n.op, n.groups.data(), &visible);
    for (size_t count = n.outputs.size(); count > visible; count--)
      if (uses[n.outputs[count - 1]] > 0) return count;
    return visible;
  }

  void run_node(uint32_t index) {
    const GraphNode& n = g.nodes[index];
    std::vector<TensorRef> hold(n.inputs.size());
    std::vector<Tensor*> inputs(n.inputs.size(), nullptr);
    for (size_t i = 0; i < n.inputs.size(); i++) {
      if (n.inputs[i] == UINT32_MAX) continue;
      hold[i] = value(n.inputs[i]);
      for (auto& [input, id] : n.writes)
        if (input == i) hold[i] = writable(n.inputs[i], hold[i]), values[id] = hold[i];
      inputs[i] = hold[i].get();
    }
    std::vector<TensorRef> outputs(outputs_of(n));
    try {
      place_node(index, inputs, outputs);
      for (size_t i = 0; i < outputs.size(); i++) {
        if (values[n.outputs[i]]) continue;  // fed
        values[n.outputs[i]] = std::move(outputs[i]);
        learn(n.outputs[i]);
      }
    } catch (pg::Error& e) {
      std::string text = e.what(), op = n.op->info->name;
      if (text.starts_with(op + ": ")) text.erase(0, op.size() + 2);
      if (n.origin != nullptr) text += std::string("; recorded at ") + n.origin;
      throw pg::Error(e.code, (n.name == op ? op : n.name + " (" + op + ")") + ": " + text, e.native, e.flags);
    }
    for (uint32_t id : n.inputs)
      if (id != UINT32_MAX && --uses[id] == 0) values[id] = nullptr;
  }

  // What a kernel may write into: the value's own memory where nobody else will read it, else a copy.
  TensorRef writable(uint32_t id, const TensorRef& tensor) {
    bool sole = !borrowed[id] && uses[id] == 1 && !tensor->view && tensor->storage->refs.load() == 1;
    return sole ? tensor : copy_dense(*tensor, tensor->meta->dtype);
  }

  // A size that only became known now. Sizes of several names that meet in an operator count as one, for gradients too.
  void learn(uint32_t id) {
    const Meta &want = *g.values[id].meta, &got = *values[id]->meta;
    if (want.rank != got.rank)
      pg::fail(PG_E_FAILED_PRECONDITION, "gave " + shape_text(got) + ", but was recorded as " + shape_text(want) +
                                             ": the number of axes cannot depend on the run; name those to leave out");
    for (uint32_t i = 0; want.symbolic && i < want.rank; i++) {
      if (!PG_DIM_IS_SYMBOLIC(want.shape[i])) continue;
      int64_t known = bindings.try_emplace(want.shape[i], got.shape[i]).first->second;
      if (known != got.shape[i])
        pg::fail_argument(
            pg::format("gave %s, but %s is %lld in this run: sizes of different names that meet in an "
                       "operator must be equal",
                       shape_text(got).c_str(), dim_text(want.shape[i]).c_str(), static_cast<long long>(known)));
    }
  }
};

Session::Session(GraphRef graph) : graph_(std::move(graph)) {
  for (uint32_t id = 0; id < graph_->values.size(); id++)
    if (graph_->values[id].kind == ValueKind::variable)
      variables_[id] = copy_dense(*graph_->values[id].eager, graph_->values[id].meta->dtype);
}

void Session::assign(Tensor& variable, Tensor& value) {
  std::lock_guard lock(mutex_);
  Graph& g = *graph_;
  if (!variable.is_graph() || variable.graph.get() != &g) pg::fail_argument("not a tensor of this session's graph");
  uint32_t id = variable.value;
  if (g.values[id].variable != UINT32_MAX) id = g.values[id].variable;
  const GraphValue& v = g.values[id];
  if (v.kind != ValueKind::variable) pg::fail_argument("'" + v.name + "' is no variable");
  if (value.meta->dtype != v.meta->dtype || !same_shape(*value.meta, *v.meta))
    pg::fail_argument(pg::format("variable '%s' is %s %s; got %s %s", v.name.c_str(), pg::dtype_name(v.meta->dtype),
                                 shape_text(*v.meta).c_str(), pg::dtype_name(value.meta->dtype),
                                 shape_text(*value.meta).c_str()));
  Scoped<bool> no_grad(ambient().grad_enabled, false);
  Scoped<Graph*> eager(ambient().graph, nullptr);
  Scoped<const Autocast*> no_casts(ambient().autocast, nullptr);
  variables_[id] = value.device == v.device ? copy_dense(value, v.meta->dtype) : move_to(value, *v.device);
}

std::string Session::placement() {
  std::lock_guard lock(mutex_);
  std::string text;
  auto add = [&](const std::string& name, const char* kind, const Device& device) {
    text += name + ": (" + kind + "): " + device.name + "\n";
  };
  for (const GraphValue& v : graph_->values)
    if (v.kind != ValueKind::node) add(v.name, kind_text(v.kind), *v.device);
  for (size_t i = 0; i < graph_->nodes.size(); i++) {
    const GraphNode& n = graph_->nodes[i];
    add(n.name, n.op->info->name, i < moved_.size() && moved_[i] ? default_device() : *n.device);
  }
  return text;
}

void Session::run(Tensor* const* fetches, uint32_t fetch_count, Tensor* const* feeds, Tensor* const* values,
                  uint32_t feed_count, TensorRef* results) {
  std::lock_guard lock(mutex_);
  Graph& g = *graph_;
  for (auto& [id, last] : g.latest)  // made since the session was
    if (!variables_.count(id)) variables_[id] = copy_dense(*g.values[id].eager, g.values[id].meta->dtype);
  Scoped<bool> no_grad(ambient().grad_enabled, false);
  Scoped<bool> no_lines(ambient().log_placement, false);  // where nodes run was said when they were recorded
  Scoped<Graph*> eager(ambient().graph, nullptr);
  Scoped<const Autocast*> no_casts(ambient().autocast, nullptr);  // the graph holds those it was recorded with
  moved_.resize(g.nodes.size(), 0);
  Run run{g, variables_, soft_, moved_};
  run.values.resize(g.values.size());
  run.uses.assign(g.values.size(), 0);
  run.needed.assign(g.nodes.size(), 0);
  run.borrowed.assign(g.values.size(), 0);
  for (uint32_t i = 0; i < feed_count; i++) {
    if (!feeds[i]->is_graph() || feeds[i]->graph.get() != &g) pg::fail_argument("a feed is not a tensor of this graph");
    uint32_t variable = g.values[feeds[i]->value].variable;  // what is read of it, which its updates start from
    run.bind(variable != UINT32_MAX ? variable : feeds[i]->value, *values[i]);
  }
  for (uint32_t i = 0; i < fetch_count; i++) {
    if (!fetches[i]->is_graph() || fetches[i]->graph.get() != &g)
      pg::fail_argument("a fetch is not a tensor of this graph");
    run.need(fetches[i]->value);
  }
  for (uint32_t n = 0; n < g.nodes.size(); n++)  // ordered effects happen in every run
    if (g.nodes[n].op->info->effect == PG_EFFECT_ORDERED && !g.nodes[n].outputs.empty())
      run.need(g.nodes[n].outputs[0]);
  // A variable's last value is kept where the run makes it.
  for (auto& [id, last] : g.latest)
    if (last != id && run.needed[g.values[last].node]) run.uses[last]++;
  for (uint32_t n = 0; n < g.nodes.size(); n++)
    if (run.needed[n]) run.run_node(n);
  std::vector<TensorRef> fetched;
  std::vector<uint32_t> wanted;
  for (uint32_t i = 0; i < fetch_count; i++) {
    wanted.push_back(fetches[i]->value);
    auto last = g.latest.find(wanted[i]);
    if (last != g.latest.end() && run.values[last->second]) wanted[i] = last->second;
  }
  for (uint32_t i = 0; i < fetch_count; i++) {
    TensorRef& v = run.value(wanted[i]);
    // The caller may write into what it gets: never a variable's or a constant's own memory.
    bool own = !run.borrowed[wanted[i]] && !v->view;
    for (uint32_t k = 0; k < i; k++) own = own && wanted[k] != wanted[i];
    fetched.push_back(own ? alias(*v) : copy_dense(*v, v->meta->dtype));
  }
  for (auto& [id, last] : g.latest) {
    if (last == id || !run.needed[g.values[last].node] || !run.values[last]) continue;
    TensorRef& now = run.values[last];
    variables_[id] = now->view || now->storage->refs.load() > 1 ? copy_dense(*now, now->meta->dtype) : now;
  }
  for (uint32_t i = 0; i < fetch_count; i++) results[i] = std::move(fetched[i]);
}

}  // namespace perigee
