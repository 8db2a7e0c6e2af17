// SPDX-License-Identifier: Apache-2.0
#include "graph/body.hpp"

#include <algorithm>

#include "graph/values.hpp"
#include "tape/tape.hpp"
#include "tensor/dims.hpp"

namespace perigee {
namespace {

[[noreturn]] void fail_foreign(const Graph& from) {
  if (!from.parent) pg::fail_argument("a tensor of another graph cannot be used here");
  pg::fail_argument(
      "a tensor that was computed inside of pg.cond, pg.scan or pg.while_loop is known only in there; return it from "
      "the function that computes it");
}

// Sizes of placeholders are known in every run, whatever it computes.
bool is_known_anywhere(const Graph& root, const Meta& meta) {
  for (uint32_t i = 0; i < meta.rank; i++)
    for (int64_t symbol : dim_symbols(meta.shape[i])) {
      auto fed = [&](const auto& entry) { return entry.second == symbol; };
      if (std::none_of(root.symbols.begin(), root.symbols.end(), fed)) return false;
    }
  return true;
}

// The next graph around that can still be recorded into, or `wanted` if that lies nearer.
Graph* next_around(const Graph& g, const Graph* wanted) {
  Graph* around = g.parent.get();
  while (around != nullptr && around != wanted && around->closed) around = around->parent.get();
  return around;
}

}  // namespace

GraphRef make_body(Graph& around) {
  GraphRef body = GraphRef::adopt(new Graph());
  body->parent = GraphRef::share(&around);
  return body;
}

Graph& root_of(Graph& g) {
  Graph* root = &g;
  while (root->parent) root = root->parent.get();
  return *root;
}

Graph& target_of(const PendingCall& call) {
  Graph* g = ambient().graph;
  if (g != nullptr && g->parent) return *g;
  for (Tensor* x : call.inputs)
    if (x != nullptr && x->is_graph()) g = x->graph.get();
  if (g->parent) fail_foreign(*g);
  return *g;
}

TensorRef body_argument(Graph& body, const std::string& name, const Tensor& like, bool step, bool differentiable) {
  const Meta& m = *like.meta;
  const uint32_t first = step ? 1 : 0;
  if (m.rank < first) pg::fail_argument("a tensor without axes has no steps");
  MetaRef meta = intern_meta(m.dtype, m.rank - first, m.shape + first);
  uint32_t id = add_value(body, ValueKind::placeholder, meta, like.device, free_name(body, scoped(name)));
  body.values[id].wished = true;  // where what it stands for is
  return differentiable ? source_tensor(body, id) : tensor_of(body, id);
}

TensorRef take_in(Graph& g, Tensor& x, bool meta_only) {
  if (!x.is_graph()) {
    if (!x.storage) return TensorRef::share(&x);
    Graph& root = root_of(g);
    TensorRef variable = graph_stand_in(root, x);  // of a layer
    TensorRef outer = variable ? variable : graph_capture(root, x);
    return take_in(g, *outer, meta_only);
  }
  Graph& from = *x.graph;
  if (&from == &g) return TensorRef::share(&x);
  Graph* around = next_around(g, &from);
  if (around == nullptr) fail_foreign(from);
  if (around != &from) {
    TensorRef nearer = take_in(*around, x, meta_only);
    return nearer->is_graph() ? take_in(g, *nearer, meta_only) : nearer;
  }
  if (meta_only && is_known_anywhere(root_of(g), *x.meta)) return make_tensor(x.meta, nullptr, 0, x.device);
  graph_value_now(x);
  const TakenKey key{&from, x.value, x.node.get(), x.output};
  if (auto known = g.taken_as.find(key); known != g.taken_as.end()) return TensorRef::share(known->second.get());
  const std::string& name = from.values[x.value].name;
  uint32_t id = add_value(g, ValueKind::placeholder, dense_meta(*x.meta, x.meta->dtype), x.device,
                          free_name(g, scoped(name.substr(name.rfind('/') + 1))));
  g.values[id].taken = g.values[id].wished = true;
  TensorRef inner = x.node ? source_tensor(g, id) : tensor_of(g, id);
  TensorRef outer = alias(x);
  outer->node = x.node;
  outer->output = x.output;
  g.taken.push_back({std::move(outer), inner});
  g.taken_as.emplace(key, inner);
  return inner;
}

}  // namespace perigee
