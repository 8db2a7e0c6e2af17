// SPDX-License-Identifier: Apache-2.0
// The backward pass: walks the tape from its newest node to its oldest and emits each operator's gradient.
#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "base/profile.hpp"
#include "builder/builder.hpp"
#include "tape/custom.hpp"
#include "tape/listener.hpp"
#include "tape/tape.hpp"
#include "tensor/order.hpp"
#include "tensor/watch.hpp"

namespace perigee {

struct Arrived {
  SmallVector<TensorRef, 1> cotangents;  // by output
  bool owned = false;                    // cotangents[0] is a sum of ours: may be added to in place
};

// A node that a pass will come to: the one of the highest place is next.
struct Due {
  uint64_t place;
  Node* node;
  bool operator<(const Due& other) const { return place < other.place; }
};

namespace {

thread_local std::vector<std::pair<TensorRef, std::string>> stale_notes;

const char* name_of(const Node& node) {
  if (node.kind == NodeKind::custom) return "custom_grad";
  return node.op != nullptr ? node.op->info->name : "a write";
}

}  // namespace

class Pass {
 public:
  explicit Pass(const BackwardCall& call) : call_(call) {}
  ~Pass() { stale_notes.clear(); }

  void begin() {
    if (call_.inputs != nullptr) {
      find_targets();
    } else if (has_hooks() || has_listeners()) {
      find_early_leaves();
    }
    seed();
  }

  // False when it stopped at a custom node or a hook.
  bool run() {
    if (stopped_ && !leave_hook()) return false;
    while (!queue_.empty()) {
      Node* node = queue_.top().node;
      queue_.pop();
      auto it = arrived_.find(node);
      Arrived in = std::move(it->second);
      arrived_.erase(it);
      if (node->rare && stop_at_hook(*node, in)) return false;
      if (!finish(*node, in)) return false;
    }
    commit();
    return true;
  }

  // ---- at a custom node, or a hook ----

  Node& stopped_at() const { return *stopped_; }
  uint64_t number() const { return due_.empty() ? custom_number(*stopped_) : due_.back().number; }
  bool create_graph() const { return call_.create_graph; }
  bool at_hook() const { return !due_.empty(); }
  bool needed(uint32_t input) { return wanted(stopped_->inputs[input].edge); }
  Tensor* cotangent(uint32_t output) const {
    if (!due_.empty()) return stopped_in_.cotangents[due_.back().output].get();
    return output < stopped_in_.cotangents.size() ? stopped_in_.cotangents[output].get() : nullptr;
  }
  // Takes the node's gradients (NULL where there is none), by input; or what a hook makes of its own.
  void go_on(Tensor* const* gradients, Tensor** results) {
    call_.gradients = results;
    if (!due_.empty()) return take_from_hook(gradients[0]);
    NodeRef node = std::move(stopped_);
    stopped_in_ = {};
    for (uint32_t i = 0; i < node->inputs.size(); i++) {
      if (gradients[i] == nullptr || !wanted(node->inputs[i].edge)) continue;
      check_gradient(*node, i, *gradients[i]);
      arrive(node->inputs[i].edge, TensorRef::share(gradients[i]));
    }
    visited_.push_back(std::move(node));
  }

 private:
  // With all that flows into a node, as it is to be. False: it stopped there.
  bool finish(Node& node, Arrived& in) {
    capture(&node, in);
    if (node.rare) retain(node, in);
    if (node.kind == NodeKind::leaf) {
      if (call_.inputs == nullptr) {
        if (node.rare) tell_arrived(node, *in.cotangents[0]);
        collected_.push_back({NodeRef::share(&node), 0, std::move(in.cotangents[0])});
      }
    } else if (goes_through(node)) {
      check_released(node);
      if (node.kind == NodeKind::custom) {
        stop(node, std::move(in));
        return false;
      }
      ProfileSpan span;
      step(node, in);
      if (span.on()) [[unlikely]]
        span.done(ProfileKind::backward, name_of(node), -1);
    }
    return true;
  }

  bool goes_through(Node& node) { return call_.inputs == nullptr || leads_to_target(&node); }

  bool stop_at_hook(Node& node, Arrived& in) {
    const auto& hooks = node.rare->hooks;
    if (hooks.empty() || std::count(quiet_.begin(), quiet_.end(), &node) != 0 || !goes_through(node)) return false;
    for (size_t i = hooks.size(); i-- > 0;)
      if (in.cotangents[hooks[i].output]) due_.push_back(hooks[i]);
    if (due_.empty()) return false;
    stop(node, std::move(in));
    return true;
  }

  void take_from_hook(Tensor* replacement) {
    if (replacement != nullptr) {
      check_replacement(*replacement);
      stopped_in_.cotangents[due_.back().output] = TensorRef::share(replacement);
      stopped_in_.owned = false;
    }
    due_.pop_back();
    const auto& hooks = stopped_->rare->hooks;  // one hook may have removed the next
    auto removed = [&](const Node::Hook& due) {
      return std::none_of(hooks.begin(), hooks.end(), [&](const Node::Hook& h) { return h.number == due.number; });
    };
    while (!due_.empty() && removed(due_.back())) due_.pop_back();
  }

  // False: there is another hook, or the node is a custom one.
  bool leave_hook() {
    if (!due_.empty()) return false;
    NodeRef node = std::move(stopped_);
    Arrived in = std::move(stopped_in_);
    return finish(*node, in);
  }

  void tell_arrived(Node& leaf, Tensor& gradient) {
    if (leaf.rare->listeners.empty()) return;
    if (ambient().launches != nullptr) ambient().launches->refuse("backward shows its gradients to who sums them up");
    Scoped<bool> plain(ambient().grad_enabled, false);
    for (const Node::Listener& l : leaf.rare->listeners) l.who->arrived(l.number, gradient, leaf.gradient.get());
  }
  void tell_collected(Node& node, uint32_t output, Tensor& gradient) {
    if (!node.rare || node.kind != NodeKind::leaf || output != 0) return;
    for (const Node::Listener& l : node.rare->listeners) l.who->collected(l.number, gradient);
  }

  void retain(Node& node, const Arrived& in) {
    for (const Node::Retained& kept : node.rare->retained)
      if (in.cotangents[kept.output] && !in.cotangents[kept.output]->is_graph())
        collected_.push_back({NodeRef::share(&node), kept.output, in.cotangents[kept.output]});
  }

  // What the caller's arrays hold must outlive the call that began the pass.
  void stop(Node& node, Arrived in) {
    stopped_ = NodeRef::share(&node);
    stopped_in_ = std::move(in);
    if (call_.inputs == nullptr || !held_inputs_.empty()) return;
    for (uint32_t i = 0; i < call_.input_count; i++) {
      held_inputs_.push_back(TensorRef::share(call_.inputs[i]));
      held_pointers_.push_back(call_.inputs[i]);
    }
    call_.inputs = held_pointers_.data();
  }

  void check_released(const Node& node) {
    if (!node.released) return;
    pg::fail(PG_E_FAILED_PRECONDITION,
             pg::format("what %s saved was released by an earlier backward; call that one with {retain_graph=true}",
                        name_of(node)));
  }

  // ---- where it begins and what it is for ----

  void seed() {
    for (uint32_t i = 0; i < call_.root_count; i++) {
      Tensor& root = *call_.roots[i];
      Edge edge = edge_of(root);
      if (!edge.node) pg::fail(PG_E_FAILED_PRECONDITION, "this tensor depends on nothing that requires gradients");
      Tensor* given = call_.seeds != nullptr ? call_.seeds[i] : nullptr;
      TensorRef cotangent;
      if (given != nullptr) {
        if (call_.inputs == nullptr && given->is_graph()) fail_recorded("the seed is");
        if (!same_shape(*given->meta, *root.meta))
          pg::fail_argument("the seed has shape " + shape_text(*given->meta) + "; expected " + shape_text(*root.meta));
        cotangent =
            given->meta->dtype == root.meta->dtype ? TensorRef::share(given) : emit_cast(*given, root.meta->dtype);
      } else {
        if (root.meta->numel != 1 && !root.is_graph())
          pg::fail_argument("backward needs a tensor of one element, or a seed; this one has shape " +
                            shape_text(*root.meta));
        cotangent = call1(role_op(Role::ones_like), {&root});
      }
      arrive(edge, std::move(cotangent));
    }
  }

  void find_targets() {
    for (uint32_t i = 0; i < call_.input_count; i++) {
      Edge edge = edge_of(*call_.inputs[i]);
      if (!edge.node) pg::fail_argument(pg::format("input %u does not require gradients", i + 1));
      targets_[edge.node.get()] = true;
      leads_[edge.node.get()] = true;
      const Tensor& x = *call_.inputs[i];  // a leaf's stand-in: its hooks wait for the pass that this one is part of
      if (!x.storage && !x.is_graph()) quiet_.push_back(edge.node.get());
    }
    captured_.resize(call_.input_count);
  }

  // Leaves come last, when nothing can flow into them any more. One with a hook or a listener comes as soon as that is
  // so, right behind the oldest node that uses it, for who is told may have a use for what lies between (sums over
  // replicas).
  void find_early_leaves() {
    std::vector<Node*> waiting;
    std::unordered_set<Node*> seen;
    auto meet = [&](Node* node) {
      if (node != nullptr && node->kind != NodeKind::leaf && seen.insert(node).second) waiting.push_back(node);
    };
    for (uint32_t i = 0; i < call_.root_count; i++) meet(edge_of(*call_.roots[i]).node.get());
    while (!waiting.empty()) {
      Node* node = waiting.back();
      waiting.pop_back();
      for (const InputRecord& input : node->inputs) {
        Node* behind = input.edge.node.get();
        meet(behind);
        if (behind == nullptr || behind->kind != NodeKind::leaf || !behind->rare) continue;
        if (behind->rare->hooks.empty() && behind->rare->listeners.empty()) continue;
        auto [it, fresh] = last_use_.try_emplace(behind, node->sequence);
        if (!fresh) it->second = std::min(it->second, node->sequence);
      }
    }
  }

  uint64_t place_of(const Node& node) const {
    if (node.kind == NodeKind::leaf && !last_use_.empty()) {
      if (auto it = last_use_.find(&node); it != last_use_.end()) return 2 * it->second;
    }
    return 2 * node.sequence + 1;
  }

  // Whether any target lies behind the node: depth-first without recursion, remembered.
  bool leads_to_target(Node* from) {
    if (auto it = leads_.find(from); it != leads_.end()) return it->second;
    std::vector<std::pair<Node*, size_t>> stack{{from, 0}};
    leads_[from] = false;
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next == node->inputs.size()) {
        bool found = leads_[node];
        stack.pop_back();
        if (found && !stack.empty()) leads_[stack.back().first] = true;
        continue;
      }
      Node* behind = node->inputs[next++].edge.node.get();
      if (behind == nullptr) continue;
      auto [it, fresh] = leads_.try_emplace(behind, false);
      if (fresh) {
        stack.emplace_back(behind, 0);
      } else if (it->second) {
        leads_[node] = true;
      }
    }
    return leads_[from];
  }

  bool wanted(const Edge& edge) { return edge.node && (call_.inputs == nullptr || leads_to_target(edge.node.get())); }

  // ---- cotangents ----

  void arrive(const Edge& edge, TensorRef cotangent) {
    Node* node = edge.node.get();
    auto [it, fresh] = arrived_.try_emplace(node);
    Arrived& in = it->second;
    if (fresh) {
      in.cotangents.resize(node->outputs.size());
      queue_.push({place_of(*node), node});
      keep_.push_back(edge.node);
    }
    TensorRef& place = in.cotangents[edge.output];
    if (!place) {
      place = std::move(cotangent);
      return;
    }
    bool in_place = in.owned && edge.output == 0 && !call_.create_graph && !place->is_graph();
    place = call1(role_op(Role::accumulate), {place.get(), cotangent.get()}, nullptr, in_place ? emit_in_place : 0);
    if (edge.output == 0) in.owned = true;
  }

  void capture(Node* node, const Arrived& in) {
    if (call_.inputs == nullptr || !targets_.count(node)) return;
    for (uint32_t i = 0; i < call_.input_count; i++) {
      Tensor& x = *call_.inputs[i];
      if (x.node.get() == node) captured_[i] = in.cotangents[x.output];
    }
  }

  // ---- one node ----

  void step(Node& node, Arrived& in) {
    if (node.kind == NodeKind::write_view) return step_write(node, in);
    if (node.op->info->grad == nullptr)
      pg::fail(PG_E_NOT_SUPPORTED, pg::format("%s is not differentiable", node.op->info->name));
    std::vector<TensorRef> hold;
    SmallVector<pg_value, 4> inputs, outputs, cotangents, gradients(node.inputs.size(), 0);
    SmallVector<uint8_t, 4> needed;
    for (uint32_t i = 0; i < node.inputs.size(); i++) {
      inputs.push_back(value_of(node, node.inputs[i], i, hold));
      needed.push_back(wanted(node.inputs[i].edge) ? 1 : 0);
    }
    for (uint32_t i = 0; i < node.outputs.size(); i++) {
      outputs.push_back(value_of(node, node.outputs[i], i, hold));
      cotangents.push_back(reinterpret_cast<pg_value>(i < in.cotangents.size() ? in.cotangents[i].get() : nullptr));
    }
    pg_builder builder;
    pg_grad ask{};
    ask.size = PG_SIZE(pg_grad, gradients);
    ask.user = node.op->info->user;
    ask.builder = &builder;
    ask.input_count = static_cast<uint32_t>(inputs.size());
    ask.output_count = static_cast<uint32_t>(outputs.size());
    ask.inputs = inputs.data();
    ask.groups = node.groups.data();
    ask.outputs = outputs.data();
    ask.cotangents = cotangents.data();
    ask.needed = needed.data();
    ask.attrs = node.attrs.data();
    ask.gradients = gradients.data();
    pg_error error = pg::make_error();
    int32_t code = node.op->info->grad(&ask, &error);
    if (code != PG_OK)
      throw pg::Error(code, std::string("gradient of ") + node.op->info->name + ": " + pg::message_of(code, error),
                      error.native, error.flags);
    for (uint32_t i = 0; i < gradients.size(); i++)
      if (gradients[i] != 0 && needed[i]) {
        check_gradient(node, i, *pg_builder::tensor(gradients[i]));
        arrive(node.inputs[i].edge, TensorRef::share(pg_builder::tensor(gradients[i])));
      }
    visited_.push_back(NodeRef::share(&node));
  }

  void step_write(Node& node, Arrived& in) {
    Tensor& dy = *in.cotangents[0];
    const ViewChain& chain = node.rare->chain;
    if (wanted(node.inputs[1].edge)) arrive(node.inputs[1].edge, apply_chain(chain, dy));
    if (!wanted(node.inputs[0].edge)) return;
    TensorRef part = apply_chain(chain, dy);
    TensorRef zeros = call1(role_op(Role::zeros_like), {part.get()});
    arrive(node.inputs[0].edge, write_back(chain, dy, *zeros));
  }

  // Leaves hold contents; gradients that are asked for may be of a graph.
  [[noreturn]] static void fail_recorded(const std::string& what) {
    pg::fail(PG_E_FAILED_PRECONDITION,
             what + " a tensor of a graph and has no contents here; pg.grad records gradients into the graph");
  }

  void check_gradient(const Node& node, uint32_t i, const Tensor& gradient) const {
    const Meta& x = *node.inputs[i].meta;
    if (call_.inputs == nullptr && gradient.is_graph())
      fail_recorded(pg::format("gradient of %s: input %u got", name_of(node), i + 1));
    if (!gradient.storage && !gradient.is_graph()) fail_description(node, i, gradient);
    const int32_t code = node.kind == NodeKind::custom ? PG_E_INVALID_ARGUMENT : PG_E_INTERNAL;
    if (const Device* device = node.inputs[i].device; !gradient.is_graph() && gradient.device != device)
      pg::fail(code, pg::format("gradient of %s: input %u got a tensor on %s; expected one on %s", name_of(node), i + 1,
                                gradient.device->name.c_str(), device->name.c_str()));
    if (same_shape(*gradient.meta, x) && gradient.meta->dtype == x.dtype) return;
    if (x.symbolic || gradient.meta->symbolic) return;  // equal only once sizes are known
    pg::fail(code, pg::format("gradient of %s: input %u got %s %s; expected %s %s", name_of(node), i + 1,
                              pg::dtype_name(gradient.meta->dtype), shape_text(*gradient.meta).c_str(),
                              pg::dtype_name(x.dtype), shape_text(x).c_str()));
  }

  void check_replacement(const Tensor& given) const {
    const OutputRecord& y = stopped_->outputs[due_.back().output];
    if (call_.inputs == nullptr && given.is_graph()) fail_recorded("the hook returned");
    if (!given.is_graph() && given.device != y.device)
      pg::fail_argument(pg::format("the hook returned a tensor on %s; expected one on %s", given.device->name.c_str(),
                                   y.device->name.c_str()));
    if (same_shape(*given.meta, *y.meta) && given.meta->dtype == y.meta->dtype) return;
    if (given.meta->dtype == y.meta->dtype && (given.meta->symbolic || y.meta->symbolic)) return;
    pg::fail_argument(pg::format("the hook returned %s %s; expected %s %s", pg::dtype_name(given.meta->dtype),
                                 shape_text(*given.meta).c_str(), pg::dtype_name(y.meta->dtype),
                                 shape_text(*y.meta).c_str()));
  }

  // A rule may return what it was shown, if it has contents.
  [[noreturn]] static void fail_description(const Node& node, uint32_t i, const Tensor& gradient) {
    std::string stale = stale_reason(gradient);
    if (!stale.empty()) pg::fail(PG_E_FAILED_PRECONDITION, stale);
    pg::fail(PG_E_INTERNAL, pg::format("gradient of %s: input %u got a tensor that has no contents here: the operator "
                                       "did not declare it as saved",
                                       name_of(node), i + 1));
  }

  template <class Record>
  pg_value value_of(Node& node, Record& record, uint32_t index, std::vector<TensorRef>& hold) {
    if (!record.meta) return 0;
    TensorRef tensor;
    if (record.saved) {
      tensor = unpack(node, record, index);
    } else {
      tensor = make_tensor(record.meta, nullptr, 0, record.device);
      tensor->graph = node.graph;
      tensor->value = record.value;
    }
    hold.push_back(tensor);
    return reinterpret_cast<pg_value>(tensor.get());
  }

  template <class Record>
  TensorRef unpack(Node& node, Record& record, uint32_t index) {
    Tensor& saved = *record.saved;
    constexpr bool is_output = std::is_same_v<Record, OutputRecord>;
    uint64_t version = saved.storage ? saved.storage->version.load(std::memory_order_relaxed) : 0;
    if (version != record.version) return stale(node, record, index, version, is_output);
    if constexpr (is_output) {
      if (!is_differentiable(saved.meta->dtype)) return record.saved;
      TensorRef copy = alias(saved);  // linked here, not at record time: a node must not own itself
      copy->node = NodeRef::share(&node);
      copy->output = index;
      return copy;
    }
    return record.saved;
  }

  template <class Record>
  TensorRef stale(const Node& node, const Record& record, uint32_t index, uint64_t version, bool is_output) {
    TensorRef empty = make_tensor(record.meta, nullptr, 0, record.device);
    uint32_t flat = index, declared = 0;
    if (!is_output)
      while (flat >= node.groups[declared]) flat -= node.groups[declared++];
    const char* name = is_output ? node.op->info->outputs[std::min(index, node.op->info->output_count - 1)]->name
                                 : node.op->info->inputs[declared]->name;
    stale_notes.emplace_back(
        empty,
        pg::format(
            "backward of %s needs its %s '%s' %s, which was modified in place since (version %llu, saved at %llu); "
            "write into a :clone() instead",
            node.op->info->name, is_output ? "output" : "input", name, shape_text(*record.meta).c_str(),
            static_cast<unsigned long long>(version), static_cast<unsigned long long>(record.version)));
    return empty;
  }

  // ---- the end: nothing before this has changed what the user sees ----

  void commit() {
    // All that allocates comes first, so that running out of memory leaves every gradient as it was.
    for (auto& [node, output, cotangent] : collected_) {
      TensorRef* gradient = gradient_of(*node, output);
      if (gradient == nullptr) continue;  // not kept any more
      if (*gradient && call_.create_graph) {
        cotangent = call1(role_op(Role::accumulate), {gradient->get(), cotangent.get()});
      } else if (!*gradient && !call_.create_graph) {
        const Meta& leaf = *node->outputs[output].meta;  // whose order updates want it in
        MetaRef like = leaf.dense ? keep_order(leaf, cotangent->meta->dtype) : dense_meta(leaf, cotangent->meta->dtype);
        bool ours =
            cotangent->refs.load() == 1 && cotangent->storage->refs.load() == 1 && cotangent->meta.get() == like.get();
        if (!ours) cotangent = copy_as(*cotangent, std::move(like));
      }
    }
    for (auto& [node, output, cotangent] : collected_) {
      TensorRef* gradient = gradient_of(*node, output);
      if (gradient == nullptr) continue;
      if (*gradient && !call_.create_graph) {
        call1(role_op(Role::accumulate), {gradient->get(), cotangent.get()}, nullptr, emit_in_place);
      } else {
        *gradient = std::move(cotangent);
      }
      tell_collected(*node, output, **gradient);
    }
    for (uint32_t i = 0; i < captured_.size(); i++) call_.gradients[i] = captured_[i].release();
    if (call_.retain_graph || call_.create_graph) return;
    for (NodeRef& node : visited_) {
      for (InputRecord& r : node->inputs) node->released |= static_cast<bool>(r.saved), r.saved = nullptr;
      for (OutputRecord& r : node->outputs) node->released |= static_cast<bool>(r.saved), r.saved = nullptr;
      if (node->kind == NodeKind::custom) {
        node->released = true;
        forget_custom(*node);
      }
      if (node->released) drop_hooks(*node);  // no pass comes here any more
    }
  }

  // A gradient that is added in the end to what a leaf has, or to one that is kept.
  struct Collected {
    NodeRef node;
    uint32_t output;
    TensorRef cotangent;
  };

  BackwardCall call_;
  std::priority_queue<Due> queue_;
  std::unordered_map<const Node*, uint64_t> last_use_;  // of early leaves: the oldest node's sequence
  std::unordered_map<Node*, Arrived> arrived_;
  std::unordered_map<Node*, bool> targets_, leads_;
  std::vector<Node*> quiet_;
  std::vector<TensorRef> captured_;
  std::vector<Collected> collected_;
  std::vector<NodeRef> visited_, keep_;
  NodeRef stopped_;
  std::vector<Node::Hook> due_;  // of the node it stopped at, the next one last
  Arrived stopped_in_;
  std::vector<TensorRef> held_inputs_;
  std::vector<Tensor*> held_pointers_;
};

std::string stale_reason(const Tensor& tensor) {
  for (auto& [stale, reason] : stale_notes)
    if (stale.get() == &tensor) return reason;
  return "";
}

void DropPass::operator()(Pass* pass) const { delete pass; }

namespace {

// Runs a pass to its end, or to where it stops.
template <class Start>
PassRef run_pass(PassRef pass, Start&& start) {
  Scoped<bool> by_itself(ambient().derived, true);
  Scoped<int32_t> no_scope(ambient().device, -1);  // gradients are computed where the forward was, in its dtypes
  Scoped<const Autocast*> no_casts(ambient().autocast, nullptr);
  Scoped<bool> grad(ambient().grad_enabled, pass->create_graph());
  start(*pass);
  return pass->run() ? nullptr : std::move(pass);
}

}  // namespace

PassRef backward(const BackwardCall& call) {
  return run_pass(PassRef(new Pass(call)), [](Pass& pass) { pass.begin(); });
}
PassRef go_on(PassRef pass, Tensor* const* gradients, Tensor** results) {
  return run_pass(std::move(pass), [&](Pass& stopped) { stopped.go_on(gradients, results); });
}
const Node& stopped_at(const Pass& pass) { return pass.stopped_at(); }
uint64_t number_of(const Pass& pass) { return pass.number(); }
bool creates_graph(const Pass& pass) { return pass.create_graph(); }
bool input_needed(Pass& pass, uint32_t input) { return pass.needed(input); }
bool stopped_at_pure(const Pass& pass) { return !pass.at_hook() && pass.stopped_at().pure; }
bool is_unchanged(const Pass& pass, const Tensor& tensor, bool output, uint32_t index) {
  const Node& node = pass.stopped_at();
  const uint64_t then = output ? node.outputs[index].version : node.inputs[index].version;
  return !tensor.storage || tensor.storage->version.load(std::memory_order_relaxed) == then;
}
TensorRef cotangent_of(const Pass& pass, uint32_t output) {
  Tensor* cotangent = pass.cotangent(output);
  return cotangent == nullptr ? nullptr : TensorRef::share(cotangent);
}
TensorRef link_output(const Pass& pass, Tensor& saved, uint32_t output) {
  TensorRef linked = alias(saved);
  linked->node = NodeRef::share(&pass.stopped_at());
  linked->output = output;
  return linked;
}

}  // namespace perigee
