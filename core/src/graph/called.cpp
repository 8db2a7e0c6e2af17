// SPDX-License-Identifier: Apache-2.0
// Layers in a graph: what they hold becomes the graph's variables when it is first used. The eager tensors stay what
// they are; in the graph each of them, its detached twins and its views mean the variable.
#include <algorithm>
#include <set>

#include "graph/values.hpp"
#include "tape/tape.hpp"

namespace perigee {
namespace {

bool is_whole(const CalledTensor& c, const Tensor& x) { return c.offset == x.offset && c.meta.get() == x.meta.get(); }

bool overlaps(const CalledTensor& c, const Tensor& x) {
  return x.offset < c.offset + c.meta->span && c.offset < x.offset + x.meta->span;
}

CalledTensor* find_whole(Graph& g, const Tensor& x) {
  auto [from, to] = g.called_at.equal_range(x.storage.get());
  for (auto it = from; it != to; ++it)
    if (is_whole(g.called[it->second], x)) return &g.called[it->second];
  return nullptr;
}

CalledTensor* find_part(Graph& g, const Tensor& x) {
  auto [from, to] = g.called_at.equal_range(x.storage.get());
  for (auto it = from; it != to; ++it)
    if (overlaps(g.called[it->second], x)) return &g.called[it->second];
  return nullptr;
}

uint32_t variable_of(Graph& g, CalledTensor& c) {
  if (c.variable != UINT32_MAX) return c.variable;
  c.variable =
      add_value(g, ValueKind::variable, dense_meta(*c.meta, c.meta->dtype), c.source->device, free_name(g, c.name));
  GraphValue& v = g.values[c.variable];
  v.named = true;
  v.wished = c.source->device->accelerator;
  if (!v.wished && g.usual != nullptr) v.device = g.usual;
  v.origin = ambient().origin;
  make_variable(g, c.variable, c.source);
  return c.variable;
}

// The variable as it stands: writes through other tensors of the graph have moved it on.
Tensor& stand_in(Graph& g, CalledTensor& c) {
  uint32_t id = variable_of(g, c);
  if (!c.now) c.now = tensor_of(g, id);
  Tensor& now = *c.now;
  if (!now.node || now.node->kind == NodeKind::leaf) {  // whether it needs gradients is the eager tensor's
    now.node = c.source->node;
    now.output = c.source->output;
    g.values[id].history = now.node;
    g.values[id].output = now.output;
  }
  if (uint32_t last = g.latest.at(id); now.value != last) {
    now.value = last;
    now.epoch++;
  }
  return now;
}

TensorRef whole_of(Graph& g, CalledTensor& c, Tensor& x, bool to_write) {
  Tensor& now = stand_in(g, c);
  const bool twin = x.node.get() != c.source->node.get();  // detached
  if (to_write) c.settled = false;
  if (c.settled) {
    TensorRef first = tensor_of(g, c.variable);
    return twin ? alias(*first) : first;
  }
  return twin ? alias(now) : TensorRef::share(&now);
}

TensorRef view_of(Graph& g, const CalledTensor& c, Tensor& x, bool to_write) {
  Tensor& base = base_of(x);
  CalledTensor* of = &base != &x && base.storage.get() == x.storage.get() ? find_whole(g, base) : nullptr;
  if (of == nullptr)
    pg::fail(PG_E_FAILED_PRECONDITION, "'" + c.name +
                                           "' is a variable of this graph; a view of it that was made outside of the "
                                           "graph cannot be used in it: make the view inside");
  Scoped<bool> grad(ambient().grad_enabled, ambient().grad_enabled && needs_gradient(x));
  Scoped<int32_t> there(ambient().device, base.device->id);
  Scoped<bool> by_itself(ambient().derived, true);
  return apply_chain(chain_of(x), *whole_of(g, *of, base, to_write));
}

// A tensor that was taken in as a constant before its layer was called becomes the variable. Another view of it that
// was could not follow.
void convert_constant(Graph& g, CalledTensor& c) {
  auto taken = g.captured.find(c.storage.get());
  if (taken == g.captured.end()) return;
  std::vector<uint32_t>& views = taken->second;
  auto whole = views.end();
  for (auto view = views.begin(); view != views.end(); ++view) {
    const GraphValue& v = g.values[*view];
    if (v.eager->offset == c.offset && v.meta.get() == c.meta.get())
      whole = view;
    else if (overlaps(c, *v.eager))
      pg::fail(PG_E_FAILED_PRECONDITION,
               "a view of '" + c.name + "' was used in the graph before its layer was called: call the layer first");
  }
  if (whole == views.end()) return;
  c.variable = *whole;
  GraphValue& v = g.values[c.variable];
  if (!v.named) {
    forget_name(g, v.name);
    v.name = free_name(g, c.name);
    g.names[v.name] = c.variable;
  }
  v.named = true;
  make_variable(g, c.variable, c.source);
  views.erase(whole);
}

// A tensor that is known already may have got its memory since: a lazy layer's.
void renew(Graph& g, CalledTensor& c, uint32_t index, Tensor& x) {
  if (c.variable != UINT32_MAX || (c.storage.get() == x.storage.get() && is_whole(c, x))) return;
  c.storage = x.storage;
  c.offset = x.offset;
  c.meta = x.meta;
  g.called_at.emplace(x.storage.get(), index);
}

}  // namespace

void graph_call(Graph& g, const std::string& class_name, const std::vector<std::pair<std::string, Tensor*>>& tensors) {
  std::vector<std::pair<std::string, Tensor*>> fresh;
  for (auto& [name, x] : tensors) {
    if (!x->storage) continue;
    if (auto known = g.called_as.find(x); known != g.called_as.end()) {
      renew(g, g.called[known->second], known->second, *x);
    } else if (CalledTensor* same = find_whole(g, *x); same != nullptr && x->meta->numel > 0) {
      g.called_as[x] = static_cast<uint32_t>(same - g.called.data());
    } else {
      fresh.emplace_back(name, x);
    }
  }
  if (fresh.empty()) return;
  std::set<std::string> taken;
  for (const CalledTensor& c : g.called) taken.insert(c.name);
  std::string prefix;
  auto clashes = [&] {
    return std::any_of(fresh.begin(), fresh.end(), [&](auto& entry) {
      std::string name = scoped(prefix + entry.first);
      return g.names.count(name) != 0 || taken.count(name) != 0;
    });
  };
  for (int number = 1; clashes(); number++) prefix = class_name + "_" + std::to_string(number) + ".";
  for (auto& [name, x] : fresh) {
    if (g.called_as.count(x)) continue;  // tied: one variable, under its first name
    auto index = static_cast<uint32_t>(g.called.size());
    g.called.push_back(
        {TensorRef::share(x), x->storage, x->offset, x->meta, scoped(prefix + name), UINT32_MAX, nullptr});
    g.called_at.emplace(x->storage.get(), index);
    g.called_as[x] = index;
    convert_constant(g, g.called.back());
  }
}

TensorRef graph_stand_in(Graph& g, Tensor& x, bool to_write) {
  if (g.called.empty() || !x.storage || x.is_graph()) return nullptr;
  if (CalledTensor* c = find_whole(g, x)) return whole_of(g, *c, x, to_write);
  if (CalledTensor* c = find_part(g, x)) return view_of(g, *c, x, to_write);
  return nullptr;
}

void graph_settle(Graph& g) {
  for (CalledTensor& c : g.called) c.settled = c.variable != UINT32_MAX && g.latest.at(c.variable) != c.variable;
}

bool graph_knows(Graph& g, Tensor& x) {
  return g.called_as.count(&x) != 0 || (x.storage && find_whole(g, x) != nullptr);
}

TensorRef graph_variable_of(Graph& g, Tensor& x) {
  if (x.is_graph()) {
    if (x.graph.get() != &g) return nullptr;
    const GraphValue& v = g.values[x.value];
    if (v.kind == ValueKind::variable) return tensor_of(g, x.value);
    return v.variable == UINT32_MAX ? nullptr : tensor_of(g, v.variable);
  }
  auto known = g.called_as.find(&x);
  CalledTensor* c = known != g.called_as.end() ? &g.called[known->second] : x.storage ? find_whole(g, x) : nullptr;
  return c == nullptr || c->variable == UINT32_MAX ? nullptr : tensor_of(g, c->variable);
}

TensorRef graph_source_at(Graph& g, uint32_t index) {
  for (CalledTensor& c : g.called)
    if (c.variable == g.variables.at(index)) return c.source;
  return nullptr;
}

TensorRef graph_variable_at(Graph& g, uint32_t index) {
  return index < g.variables.size() ? tensor_of(g, g.variables[index]) : nullptr;
}

}  // namespace perigee
