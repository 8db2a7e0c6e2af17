// SPDX-License-Identifier: Apache-2.0
#include "plan/session.hpp"

#include "tape/tape.hpp"

namespace perigee {
namespace {

// Scripts ask for a few things again and again; who asks for ever new ones pays for the preparation.
constexpr size_t max_prepared = 64;

// What a variable begins with: of a layer's, what the layer holds now.
TensorRef first_value(const GraphValue& v) {
  Tensor& now = *v.eager;
  if (now.meta->dtype != v.meta->dtype || !same_shape(*now.meta, *v.meta))
    pg::fail(PG_E_FAILED_PRECONDITION,
             pg::format("variable '%s' is %s %s in the graph, and the layer holds %s %s now", v.name.c_str(),
                        pg::dtype_name(v.meta->dtype), shape_text(*v.meta).c_str(), pg::dtype_name(now.meta->dtype),
                        shape_text(*now.meta).c_str()));
  return now.device == v.device ? copy_dense(now, v.meta->dtype) : move_to(now, *v.device);
}

}  // namespace

Session::Session(GraphRef graph) : graph_(std::move(graph)) { add_variables(); }

// Those that were recorded since.
void Session::add_variables() {
  for (uint32_t id : graph_->variables)
    if (!variables_.count(id)) variables_[id] = first_value(graph_->values[id]);
}

void Session::assign(Tensor& variable, Tensor& value) {
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
  TensorRef held = value.device == v.device ? copy_dense(value, v.meta->dtype) : move_to(value, *v.device);
  std::lock_guard updating(updating_);
  std::lock_guard lock(mutex_);
  variables_[id] = std::move(held);
}

TensorRef Session::contents(const std::string& name) {
  auto known = graph_->names.find(name);
  if (known == graph_->names.end() || known->second == UINT32_MAX || !graph_->values[known->second].eager)
    pg::fail(PG_E_NOT_FOUND, "'" + name + "' is no variable or constant");
  std::lock_guard lock(mutex_);
  auto held = variables_.find(known->second);
  return held != variables_.end() ? held->second : graph_->values[known->second].eager;
}

std::string Session::placement() {
  std::lock_guard lock(soft_.mutex);
  std::string text;
  auto add = [&](const std::string& name, const char* kind, const Device& device) {
    text += name + ": (" + kind + "): " + device.name + "\n";
  };
  for (const GraphValue& v : graph_->values)
    if (v.kind != ValueKind::node) add(v.name, kind_text(v.kind), *v.device);
  for (uint32_t i = 0; i < graph_->nodes.size(); i++) {
    const GraphNode& n = graph_->nodes[i];
    add(n.name, n.op->info->name, soft_.moved.count(i) ? default_device() : *n.device);
  }
  return text;
}

std::shared_ptr<Runner> Session::find_runner(std::vector<uint32_t> fetches, std::vector<uint32_t> feeds) {
  const Graph& g = *graph_;
  std::lock_guard lock(mutex_);
  for (auto it = prepared_.begin(); it != prepared_.end(); ++it) {
    if (it->fetches != fetches || it->feeds != feeds) continue;
    if (it->nodes != g.nodes.size() || it->values != g.values.size()) {  // variables may have later values by now
      prepared_.erase(it);
      break;
    }
    prepared_.splice(prepared_.begin(), prepared_, it);
    return it->runner;
  }
  auto runner = std::make_shared<Runner>(g, fetches, feeds, &soft_);
  add_variables();
  if (prepared_.size() == max_prepared) prepared_.pop_back();
  prepared_.push_front({std::move(fetches), std::move(feeds), g.nodes.size(), g.values.size(), runner});
  return runner;
}

void Session::run(Tensor* const* fetches, uint32_t fetch_count, Tensor* const* feeds, Tensor* const* values,
                  uint32_t feed_count, TensorRef* results) {
  const Graph& g = *graph_;
  std::vector<uint32_t> wanted, fed;
  for (uint32_t i = 0; i < feed_count; i++) {
    if (!feeds[i]->is_graph() || feeds[i]->graph.get() != &g) pg::fail_argument("a feed is not a tensor of this graph");
    uint32_t variable = g.values[feeds[i]->value].variable;  // what is read of it, which its updates start from
    fed.push_back(variable != UINT32_MAX ? variable : feeds[i]->value);
  }
  for (uint32_t i = 0; i < fetch_count; i++) {
    if (!fetches[i]->is_graph() || fetches[i]->graph.get() != &g)
      pg::fail_argument("a fetch is not a tensor of this graph");
    wanted.push_back(fetches[i]->value);
  }
  std::shared_ptr<Runner> runner = find_runner(std::move(wanted), std::move(fed));
  const PreparedRun& p = runner->prepared();
  std::unique_lock updating(updating_, std::defer_lock);
  if (!p.commits.empty()) updating.lock();
  SmallVector<TensorRef, 8> held, commits(p.commits.size()), fetched(fetch_count);
  {
    std::lock_guard lock(mutex_);
    for (const PreparedRun::Source& s : p.variables) held.push_back(variables_.at(s.value));
  }
  runner->run(values, held.data(), fetched.data(), commits.data());
  if (!commits.empty()) {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < commits.size(); i++) std::swap(variables_.find(p.commits[i].variable)->second, commits[i]);
  }
  for (uint32_t i = 0; i < fetch_count; i++) results[i] = std::move(fetched[i]);
}

}  // namespace perigee
