// SPDX-License-Identifier: Apache-2.0
#include "plan/session.hpp"

#include <algorithm>
#include <numeric>

#include "graph/control.hpp"
#include "tape/tape.hpp"

namespace perigee {
namespace {

// Scripts ask for a few things again and again; who asks for ever new ones pays for the preparation.
constexpr size_t max_prepared = 64;

// What a variable begins with: of a layer's, what the layer holds now.
TensorRef first_value(const GraphValue& v, Device& place) {
  Tensor& now = *v.eager;
  if (now.meta->dtype != v.meta->dtype || !same_shape(*now.meta, *v.meta))
    pg::fail(PG_E_FAILED_PRECONDITION,
             pg::format("variable '%s' is %s %s in the graph, and the layer holds %s %s now", v.name.c_str(),
                        pg::dtype_name(v.meta->dtype), shape_text(*v.meta).c_str(), pg::dtype_name(now.meta->dtype),
                        shape_text(*now.meta).c_str()));
  return now.device == &place ? copy_dense(now, v.meta->dtype) : move_to(now, place);
}

}  // namespace

Session::Session(GraphRef graph, bool soft, bool fuses) : graph_(std::move(graph)), soft_(soft), fuses_(fuses) {
  take_in();
}

// Under the lock, but for the constructor.
void Session::take_in() {
  if (placement_ && placed_ == graph_->revision) return;
  placement_ = place_graph(*graph_, soft_, placement_.get());
  placed_ = graph_->revision;
  for (uint32_t id : graph_->variables)
    if (!variables_.count(id)) variables_[id] = first_value(graph_->values[id], *placement_->value[id]);
}

std::shared_ptr<const Placement> Session::placed() {
  std::lock_guard lock(mutex_);
  take_in();
  return placement_;
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
  Device& place = *placed()->value[id];
  TensorRef held = value.device == &place ? copy_dense(value, v.meta->dtype) : move_to(value, place);
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

std::string Session::plan() {
  std::shared_ptr<Runner> runner;
  {
    std::lock_guard lock(mutex_);
    if (prepared_.empty()) pg::fail(PG_E_FAILED_PRECONDITION, "nothing has run yet: a plan is made by session:run");
    runner = prepared_.front().runner;
  }
  return runner->text();
}

std::string Session::placement() { return placement_text(*graph_, *placed()); }

std::shared_ptr<Runner> Session::find_runner(std::vector<uint32_t> fetches, std::vector<uint32_t> feeds) {
  const Graph& g = *graph_;
  std::lock_guard lock(mutex_);
  for (auto it = prepared_.begin(); it != prepared_.end(); ++it) {
    if (it->fetches != fetches || it->feeds != feeds) continue;
    if (it->revision != g.revision) {  // variables may have later values by now
      prepared_.erase(it);
      break;
    }
    prepared_.splice(prepared_.begin(), prepared_, it);
    return it->runner;
  }
  take_in();
  auto runner = std::make_shared<Runner>(g, fetches, feeds, placement_, fuses_);
  if (prepared_.size() == max_prepared) prepared_.pop_back();
  prepared_.push_front({std::move(fetches), std::move(feeds), g.revision, runner});
  return runner;
}

std::vector<uint32_t> Session::fetched(Tensor* const* fetches, uint32_t count) const {
  std::vector<uint32_t> wanted;
  for (uint32_t i = 0; i < count; i++) {
    if (!fetches[i]->is_graph() || fetches[i]->graph.get() != graph_.get())
      pg::fail_argument("a fetch is not a tensor of this graph");
    wanted.push_back(fetches[i]->value);
  }
  return wanted;
}

std::vector<uint32_t> Session::fed(Tensor* const* feeds, uint32_t count) const {
  std::vector<uint32_t> given;
  for (uint32_t i = 0; i < count; i++) {
    if (!feeds[i]->is_graph() || feeds[i]->graph.get() != graph_.get())
      pg::fail_argument("a feed is not a tensor of this graph");
    uint32_t variable = graph_->values[feeds[i]->value].variable;  // what is read of it, which its updates start from
    given.push_back(variable != UINT32_MAX ? variable : feeds[i]->value);
  }
  return given;
}

// `results` are those of the runner's fetches.
void Session::run(Runner& runner, Tensor* const* feeds, TensorRef* results) {
  const PreparedRun& p = runner.prepared();
  std::unique_lock updating(updating_, std::defer_lock);
  if (!p.commits.empty()) updating.lock();
  SmallVector<TensorRef, 8> held, commits(p.commits.size());
  {
    std::lock_guard lock(mutex_);
    for (const PreparedRun::Source& s : p.variables) held.push_back(variables_.at(s.value));
  }
  runner.run(feeds, held.data(), results, commits.data());
  if (commits.empty()) return;
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < commits.size(); i++) std::swap(variables_.find(p.commits[i].variable)->second, commits[i]);
}

void Session::run(Tensor* const* fetches, uint32_t fetch_count, Tensor* const* feeds, Tensor* const* values,
                  uint32_t feed_count, TensorRef* results) {
  std::vector<uint32_t> wanted = fetched(fetches, fetch_count), given = fed(feeds, feed_count);
  // In the graph's order, so that what is prepared and what is complained of do not depend on the caller's.
  SmallVector<uint32_t, 8> order(feed_count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return given[a] < given[b]; });
  std::vector<uint32_t> sorted;
  SmallVector<Tensor*, 8> contents;
  for (uint32_t i : order) {
    sorted.push_back(given[i]);
    contents.push_back(values[i]);
  }
  std::shared_ptr<Runner> runner = find_runner(std::move(wanted), std::move(sorted));
  SmallVector<TensorRef, 8> made(fetch_count);
  run(*runner, contents.data(), made.data());
  for (uint32_t i = 0; i < fetch_count; i++) results[i] = std::move(made[i]);
}

std::unique_ptr<Session::Partial> Session::begin(Tensor* const* fetches, uint32_t fetch_count, Tensor* const* feeds,
                                                 uint32_t feed_count) {
  std::unique_ptr<Partial> partial(new Partial(*this));
  partial->fetches_ = fetched(fetches, fetch_count);
  partial->feeds_ = fed(feeds, feed_count);
  std::lock_guard lock(mutex_);
  take_in();
  for (uint32_t id : variables_behind(*graph_, partial->fetches_, partial->feeds_))
    partial->known_[id] = variables_.at(id);
  return partial;
}

void Session::Partial::run(Tensor* const* fetches, uint32_t fetch_count, Tensor* const* feeds, Tensor* const* values,
                           uint32_t feed_count, TensorRef* results) {
  const Graph& g = *session_.graph_;
  auto check = [&](const std::vector<uint32_t>& told, uint32_t id, const char* what) {
    if (std::find(told.begin(), told.end(), id) == told.end())
      pg::fail_argument("'" + g.values[id].name + "' is not among the " + what + " that the partial run began with");
  };
  std::vector<uint32_t> wanted = session_.fetched(fetches, fetch_count), given = session_.fed(feeds, feed_count);
  for (uint32_t id : wanted) check(fetches_, id, "fetches");
  std::map<uint32_t, TensorRef> known = known_;
  for (uint32_t i = 0; i < feed_count; i++) {
    check(feeds_, given[i], "feeds");
    if (!known.emplace(given[i], TensorRef::share(values[i])).second)
      pg::fail_argument("'" + g.values[given[i]].name + "' has been fed already");
  }
  std::vector<uint32_t> ids;
  std::vector<Tensor*> contents;
  for (auto& [id, value] : known) {
    ids.push_back(id);
    contents.push_back(value.get());
  }
  std::vector<uint32_t> kept = made_on_the_way(g, wanted, fetches_, ids);
  wanted.insert(wanted.end(), kept.begin(), kept.end());
  Runner runner(g, wanted, ids, session_.placed(), false);
  std::vector<TensorRef> made(wanted.size());
  session_.run(runner, contents.data(), made.data());
  for (size_t i = 0; i < kept.size(); i++) known[kept[i]] = std::move(made[fetch_count + i]);
  known_ = std::move(known);
  for (uint32_t i = 0; i < fetch_count; i++) results[i] = std::move(made[i]);
}

}  // namespace perigee
