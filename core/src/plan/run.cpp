// SPDX-License-Identifier: Apache-2.0
#include "plan/run.hpp"

#include "base/fork.hpp"
#include "base/log.hpp"
#include "base/profile.hpp"
#include "call/anomaly.hpp"
#include "call/eager.hpp"
#include "call/interposers.hpp"
#include "plan/arena.hpp"
#include "plan/control.hpp"
#include "plan/joined.hpp"
#include "plan/sizes.hpp"

namespace perigee {
namespace {

// Whether a signature is that of a call with these inputs; all else that it depends on is fixed in a graph.
inline bool fits(const Signature& s, Tensor* const* inputs, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (s.inputs[i].get() != (inputs[i] != nullptr ? inputs[i]->meta.get() : nullptr)) return false;
  return true;
}

// What has been said already: which node of a body it was.
struct ToldError : pg::Error {
  using pg::Error::Error;
};

// A view without a history: nothing in a run asks where it came from.
TensorRef view_of(const Signature& s, Tensor& x, uint32_t output) {
  return make_tensor(s.outputs[output].meta, x.storage, x.offset + s.outputs[output].view_offset, s.device);
}

}  // namespace

// The state of one run at a time.
struct Runner::Frame {
  static constexpr uint32_t none = PreparedRun::none;
  static constexpr size_t most_spare = 8;
  // What the last run learnt of a step: it serves as long as the descriptions of its inputs stay the same.
  struct Known {
    SignatureRef signature;
    std::vector<uint8_t> attrs;  // with sizes in place of symbols; empty: the node's own
    uint64_t sizes = 0;          // of which sizes those are
    std::vector<uint8_t> bound;  // the same with the numbers of this run
    bool moved = false;          // to another device than it was recorded on
    bool plain = false;          // nothing but the kernel is left to launch, with the attributes at
    const uint8_t* bytes = nullptr;
    std::vector<KnownStep::Shared> shared;
  };

  const Graph& g;
  const PreparedRun& p;
  const Placement* placement;
  const std::vector<std::unique_ptr<ControlRunner>>& controls;
  const bool fuses;
  std::vector<TensorRef> values{};  // by slot
  std::vector<uint8_t> borrowed{};  // by slot: memory that is not the run's to write into
  std::vector<Known> known{};       // by step
  RunSizes sizes;
  uint64_t generation = 0;                // of signatures
  std::vector<TensorRef> spare{};         // of the run under way: made by it, and no longer read
  std::unique_ptr<JoinedSteps> joined{};  // NULL: every step is launched by itself
  RunArena arena{};
  uint64_t laid_out = 0;     // the arena is that of these `sizes`; 0: of none
  uint64_t moved_bytes = 0;  // to other devices

  Frame(const Graph& graph, const PreparedRun& prepared, const Placement* placed,
        const std::vector<std::unique_ptr<ControlRunner>>& control_runners, bool joins)
      : g(graph), p(prepared), placement(placed), controls(control_runners), fuses(joins), sizes(graph, prepared) {
    values.resize(p.slot_count);
    borrowed.resize(p.slot_count, 0);
    known.resize(p.steps.size());
  }

  // ---- sources ----

  void take_sources(Tensor* const* feeds, const TensorRef* variables) {
    for (size_t i = 0; i < p.feeds.size(); i++) {
      uint32_t slot = p.feeds[i].slot;
      if (slot == none) continue;
      Device& place = *p.feeds[i].place;
      borrowed[slot] = feeds[i]->device == &place;
      values[slot] = borrowed[slot] ? TensorRef::share(feeds[i]) : move_to(*feeds[i], place);
    }
    for (size_t i = 0; i < p.variables.size(); i++) take_source(p.variables[i].slot, variables[i]);
    for (const PreparedRun::Constant& c : p.constants) {
      const TensorRef& held = g.values[c.value].eager;
      take_source(c.slot, held->meta->symbolic ? sizes.described(*held) : resident(held, *c.place));
    }
  }
  TensorRef resident(const TensorRef& held, Device& place) {
    if (placement != nullptr) return placement->residents->get(*held, place);
    return !held->storage || held->device == &place ? held : move_to(*held, place);
  }
  void take_source(uint32_t slot, const TensorRef& value) {
    values[slot] = value;
    borrowed[slot] = 1;
  }

  // ---- nodes ----

  // What a node's attributes are in this run. Numbers that are bound decide about no kernel.
  const uint8_t* attrs_of(const GraphNode& n, const PreparedRun::Step& step, Known& k) {
    const uint8_t* attrs = sized_attrs(n, step, k);
    if (step.bound_count == 0) return attrs;
    k.bound.assign(attrs, attrs + n.attrs.size());
    for (const PreparedRun::Bound& b : p.bounds_of(step)) to_host(*values[b.slot], k.bound.data() + b.offset);
    return k.bound.data();
  }

  // Symbols in attributes get this run's sizes.
  const uint8_t* sized_attrs(const GraphNode& n, const PreparedRun::Step& step, Known& k) {
    if (!step.symbols) return n.attrs.data();
    if (!k.attrs.empty() && k.sizes == sizes.changes) return k.attrs.data();
    std::vector<uint8_t> attrs = n.attrs;
    for (uint32_t i = 0; i < n.op->info->attr_count; i++) {
      const pg_attr_info& a = *n.op->info->attrs[i];
      if (a.kind != PG_ATTR_DIMS) continue;
      pg_ints list;
      std::memcpy(&list, attrs.data() + a.offset, sizeof list);
      for (int64_t d = 0; d < list.count; d++) list.value[d] = dim_value(list.value[d], sizes.bindings);
      std::memcpy(attrs.data() + a.offset, &list, sizeof list);
    }
    if (attrs != k.attrs) k.signature = nullptr;
    k.attrs = std::move(attrs);
    k.sizes = sizes.changes;
    return k.attrs.data();
  }

  // What is recorded has passed the interposers, so that nothing but the signature is left to find.
  void call_node(const GraphNode& n, Device& device, Tensor* const* inputs, const uint8_t* attrs, SignatureRef& cached,
                 TensorRef* outputs, uint32_t output_count) {
    auto count = static_cast<uint32_t>(n.inputs.size());
    if (!cached || cached->device != &device || !fits(*cached, inputs, count)) {
      SignatureKey key{n.op,
                       &device,
                       inputs,
                       count,
                       n.groups.data(),
                       attrs,
                       false,
                       is_lean(*n.op, inputs, count, n.groups.data(), output_count)};
      cached = find_signature(key, hash_key(key));
    }
    if (cached->how == How::view) {
      for (uint32_t i = 0; i < output_count; i++) outputs[i] = view_of(*cached, *inputs[0], i);
      return;
    }
    SignatureRef held = cached;  // the call may come back here
    run_eager(*held, inputs, attrs, outputs, output_count);
    if (ambient().detect_anomaly)
      check_finite(*n.op, inputs, count, n.groups.data(), attrs, false, outputs, output_count);
  }

  // On another device, and the results back.
  void call_moved(const GraphNode& n, const PreparedRun::Step& step, Tensor* const* inputs, const uint8_t* attrs,
                  Known& k, TensorRef* outputs) {
    Device& other = default_device();
    SmallVector<TensorRef, 8> moved(n.inputs.size());
    SmallVector<Tensor*, 8> there(inputs, inputs + n.inputs.size());
    for (size_t i = 0; i < there.size(); i++) {
      if (there[i] == nullptr || !there[i]->storage || there[i]->device == &other) continue;
      moved[i] = move_to(*there[i], other);
      there[i] = moved[i].get();
    }
    call_node(n, other, there.data(), attrs, k.signature, outputs, step.output_count);
    for (uint32_t i = 0; i < step.output_count; i++)
      if (outputs[i]) outputs[i] = move_to(*outputs[i], *step.place);
    for (const PreparedRun::Write& w : p.writes_of(step))
      if (w.slot != none) values[w.slot] = move_to(*there[w.input], *step.place);
  }

  void place_node(const GraphNode& n, const PreparedRun::Step& step, Tensor* const* inputs, const uint8_t* attrs,
                  Known& k, TensorRef* outputs) {
    if (!k.moved) {
      bool movable =
          placement != nullptr && placement->soft && n.op->role != Role::transfer && step.place != &default_device();
      try {
        return call_node(n, *step.place, inputs, attrs, k.signature, outputs, step.output_count);
      } catch (const pg::Error& e) {
        if (!movable || e.code != PG_E_NOT_SUPPORTED) throw;
      }
    }
    call_moved(n, step, inputs, attrs, k, outputs);
    if (std::exchange(k.moved, true)) return;
    std::lock_guard lock(placement->mutex);
    if (!placement->moved.insert(step.node).second) return;
    std::string line = placement_line(n.name, n.op->info->name, default_device());
    line.pop_back();
    write_log(PG_LOG_WARNING, line + ", since " + common_name(*step.place) + " has no kernel for it");
  }

  // Whether nobody but the run sees a value's memory, all of which is the value's.
  bool owns(uint32_t slot) const {
    const Tensor& t = *values[slot];
    return !borrowed[slot] && !t.view && t.offset == 0 && t.meta->dense && t.storage->refs.load() == 1;
  }

  // What a kernel may write into: the value's own memory where nobody else will read it, else a copy.
  TensorRef writable(uint32_t slot, bool last) {
    Tensor& t = *values[slot];
    return last && owns(slot) ? TensorRef::share(&t) : copy_dense(t, t.meta->dtype);
  }

  void run_move(const PreparedRun::Step& step) {
    const uint32_t target = p.outputs(step)[0];
    try {
      values[target] = move_to(*values[p.inputs(step)[0]], *step.place);
      moved_bytes += static_cast<uint64_t>(values[target]->meta->bytes);
    } catch (const pg::Error& e) {
      if (step.node == none) throw;
      throw told(g.nodes[step.node], e);
    }
    borrowed[target] = 0;
  }

  // What is made within a kernel may be asked for its description.
  void describe_left_out() {
    if (joined == nullptr) return;
    for (uint32_t slot = 0; slot < p.slot_count; slot++)
      if (joined->is_left_out(slot)) values[slot] = joined->described(slot);
  }

  // What a step that is not alone does where it stands.
  void run_joined(uint32_t index) {
    const JoinedSteps::Piece* piece = joined->piece(index);
    if (piece == nullptr || joined->role(index) == JoinedSteps::Role::inner) return;
    const GraphNode& n = g.nodes[p.steps[index].node];
    const RegionKernel& kernel = *piece->kernel;
    try {
      if (joined->role(index) == JoinedSteps::Role::first) {
        for (uint32_t slot : kernel.output_operands) {
          const Tensor& like = *joined->described(slot);
          values[slot] = memory_for(slot, *like.device, like.meta);
          borrowed[slot] = 0;
        }
        return;
      }
      for (uint32_t slot : kernel.input_operands) lie_as(slot, *joined->described(slot));
      Scoped<const char*> origin(ambient().origin, n.origin);
      joined->launch(*piece, values);
    } catch (const pg::Error& e) {
      throw told(n, e);
    }
  }

  // What comes from steps that are more than one call may lie in another order than in the run before.
  void lie_as(uint32_t slot, const Tensor& like) {
    if (values[slot]->meta.get() == like.meta.get()) return;
    TensorRef copy = make_dense(*like.device, like.meta);
    copy_into(*copy, *values[slot], "copy");
    values[slot] = std::move(copy);
    borrowed[slot] = 0;
  }

  void run_step(uint32_t index) {
    if (joined != nullptr && joined->role(index) != JoinedSteps::Role::alone) {
      run_joined(index);
    } else {
      run_alone(index);
    }
    if (joined != nullptr) {
      end(joined->ends()[index]);
    } else {
      end(p.ends(p.steps[index]));
    }
  }

  void run_alone(size_t index) {
    const PreparedRun::Step& step = p.steps[index];
    if (step.move) return run_move(step);
    if (known[index].plain && sizes.learnt) {
      if (run_plain(step, known[index])) return;
      known[index].plain = false;
    }
    const GraphNode& n = g.nodes[step.node];
    SmallVector<Tensor*, 8> inputs;
    for (uint32_t slot : p.inputs(step)) inputs.push_back(slot == none ? nullptr : values[slot].get());
    SmallVector<TensorRef, 4> written, outputs(step.output_count);
    try {
      for (const PreparedRun::Write& w : p.writes_of(step)) {
        if (inputs[w.input] == nullptr) continue;
        written.push_back(writable(p.inputs(step)[w.input], w.last));
        inputs[w.input] = written.back().get();
        if (w.slot != none) values[w.slot] = written.back();
      }
      Known& k = known[index];
      if (n.control) {
        controls[index]->run(inputs.data(), sizes.bindings, outputs.data());
      } else {
        k.bytes = attrs_of(n, step, k);
        place_node(n, step, inputs.data(), k.bytes, k, outputs.data());
        k.plain = k.signature->plain && !k.moved && step.bound_count == 0;
      }
      if (!sizes.learnt) known[index].shared.clear();
      auto slots = p.outputs(step);
      for (uint32_t i = 0; i < step.output_count; i++) {
        if (slots[i] == none || !outputs[i]) continue;
        if (!sizes.learnt) {
          sizes.learn(g.values[n.outputs[i]], *outputs[i]->meta);
          note_shared(known[index], i, *outputs[i], inputs);
        }
        values[slots[i]] = std::move(outputs[i]);
        borrowed[slots[i]] = 0;
      }
    } catch (const ToldError&) {
      throw;
    } catch (const pg::Error& e) {
      throw told(n, e);
    }
  }

  // Whose memory an output lies in.
  static void note_shared(Known& k, uint32_t output, const Tensor& made, const SmallVector<Tensor*, 8>& inputs) {
    for (uint32_t i = 0; i < inputs.size() && made.storage; i++) {
      if (inputs[i] == nullptr || inputs[i]->storage.get() != made.storage.get()) continue;
      k.shared.push_back({output, i, made.offset - inputs[i]->offset});
      return;
    }
  }

  // What most steps of most runs are. False, and nothing has happened, where the inputs are not those of the last run.
  bool run_plain(const PreparedRun::Step& step, const Known& k) {
    Signature& s = *k.signature;
    pg_address in[Signature::plain_inputs], out[Signature::plain_outputs];
    const uint32_t* slot = &p.slots[step.at];
    for (uint32_t i = 0; i < step.input_count; i++, slot++) {
      const Tensor* x = *slot == none ? nullptr : values[*slot].get();
      if (s.inputs[i].get() != (x != nullptr ? x->meta.get() : nullptr)) return false;
      in[i] = x != nullptr ? x->address() : pg_address{0, 0};
    }
    try {
      TensorRef unread[Signature::plain_outputs];
      for (uint32_t i = 0; i < s.outputs.size(); i++) {
        if (s.outputs[i].absent) {
          out[i] = {0, 0};
          continue;
        }
        uint32_t target = i < step.output_count ? slot[i] : none;
        TensorRef& made = target != none ? values[target] : unread[i];
        made = memory_for(target, *s.device, s.outputs[i].meta);
        if (target != none) borrowed[target] = 0;
        out[i] = made->address();
      }
      launch_plain(s, in, out, k.bytes);
    } catch (const pg::Error& e) {
      throw told(g.nodes[step.node], e);
    }
    return true;
  }

  TensorRef memory_for(uint32_t slot, Device& device, const MetaRef& meta) {
    Tensor* placed = slot != none ? arena.at(slot) : nullptr;
    return placed != nullptr && placed->meta.get() == meta.get() ? TensorRef::share(placed) : fresh(device, meta);
  }

  // Memory of the run's own that is not read any more serves the next values of its size.
  TensorRef fresh(Device& device, const MetaRef& meta) {
    for (size_t i = spare.size(); i-- > 0;) {
      Tensor& t = *spare[i];
      if (t.storage->bytes != static_cast<uint64_t>(meta->bytes) || t.device != &device) continue;
      TensorRef found = std::move(spare[i]);
      spare[i] = std::move(spare.back());
      spare.pop_back();
      if (found->meta.get() != meta.get()) found->meta = meta;
      return found;
    }
    return make_dense(device, meta);
  }

  void end(std::span<const uint32_t> slots) {
    for (uint32_t slot : slots) {
      TensorRef& v = values[slot];
      if (!v->storage) {  // made within a kernel, and only described
        v = nullptr;
        continue;
      }
      // Forms of its contents that kernels keep beside a tensor end with it.
      bool reusable = spare.size() < most_spare && v->refs.load(std::memory_order_relaxed) == 1 && owns(slot) &&
                      v->device->synchronous && v->storage->kept == nullptr;
      if (reusable) {
        spare.push_back(std::move(v));
      } else {
        v = nullptr;
      }
    }
  }

  static ToldError told(const GraphNode& n, const pg::Error& e) {
    std::string text = e.what(), op = n.op->info->name;
    if (text.starts_with(op + ": ")) text.erase(0, op.size() + 2);
    if (n.origin != nullptr) text += std::string("; recorded at ") + n.origin;
    return ToldError(e.code, (n.name == op ? op : n.name + " (" + op + ")") + ": " + text, e.native, e.flags);
  }

  // ---- the end ----

  TensorRef handed_out(const PreparedRun::Taken& taken) {
    TensorRef& v = values[taken.slot];
    return taken.last && owns(taken.slot) ? alias(*v) : copy_dense(*v, v->meta->dtype);
  }

  // Kernels that came since may serve better; those that are gone must not be asked.
  void look_for_new_kernels() {
    if (generation == signature_generation()) return;
    for (Known& k : known) {
      k.signature = nullptr;
      k.plain = false;
    }
    generation = signature_generation();
    sizes.complete = false;  // signatures are learnt anew, and then memory is laid out
  }

  // By step, where all that happens is known: a view, or one kernel.
  std::vector<const Signature*> signatures() const {
    std::vector<const Signature*> list(p.steps.size(), nullptr);
    for (size_t i = 0; i < list.size(); i++) {
      const Known& k = known[i];
      if (k.plain || (k.signature && k.signature->how == How::view && !k.moved)) list[i] = k.signature.get();
    }
    return list;
  }

  // Which steps are one call that does nothing but make its results, of what it is shown with contents.
  std::vector<KnownStep> steps_known() const {
    std::vector<KnownStep> list(p.steps.size());
    for (size_t i = 0; i < list.size(); i++) {
      const PreparedRun::Step& step = p.steps[i];
      const Known& k = known[i];
      list[i].shared = &k.shared;
      if (!k.signature || k.moved) continue;
      list[i].signature = k.signature.get();
      list[i].attrs = k.bytes;
      list[i].joins = k.signature->how != How::view && step.bound_count == 0 && step.write_count == 0;
    }
    return list;
  }

  // The second run of the same sizes knows from the first what there is to place, and what can be joined.
  void lay_out() {
    if (!sizes.learnt) arena.clear(), joined = nullptr, laid_out = 0;
    if (!sizes.learnt || laid_out == sizes.changes) return;
    joined = fuses ? std::make_unique<JoinedSteps>(p, steps_known()) : nullptr;
    if (joined != nullptr && joined->empty()) joined = nullptr;
    arena.lay_out(p, signatures(), joined.get());
    laid_out = sizes.changes;
  }

  void run(Tensor* const* feeds, const TensorRef* variables, TensorRef* results, TensorRef* commits,
           const Bindings* around) {
    look_for_new_kernels();
    sizes.bind(feeds, variables, around);
    moved_bytes = 0;
    lay_out();
    struct Held {
      RunArena& arena;
      explicit Held(RunArena& a) : arena(a) { arena.allocate(); }
      ~Held() { arena.release(); }
    } held(arena);
    take_sources(feeds, variables);
    describe_left_out();
    for (uint32_t i = 0; i < p.steps.size(); i++) run_step(i);
    for (size_t i = 0; i < p.fetches.size(); i++) results[i] = handed_out(p.fetches[i]);
    for (size_t i = 0; i < p.commits.size(); i++) commits[i] = handed_out(p.commits[i].taken);
    sizes.complete = true;
  }
};

// One that no other run uses, for the time of a run.
struct Runner::Lease {
  Runner& runner;
  std::unique_ptr<Frame> frame{};
  explicit Lease(Runner& r) : runner(r) {
    std::lock_guard lock(runner.mutex_);
    if (runner.idle_.empty()) return;
    frame = std::move(runner.idle_.back());
    runner.idle_.pop_back();
  }
  ~Lease() {
    for (TensorRef& v : frame->values) v = nullptr;
    frame->spare.clear();
    std::lock_guard lock(runner.mutex_);
    runner.idle_.push_back(std::move(frame));
  }
};

Runner::Runner(const Graph& g, std::span<const uint32_t> fetches, std::span<const uint32_t> feeds,
               std::shared_ptr<const Placement> placement, bool fuses)
    : graph_(g),
      placement_(std::move(placement)),
      fuses_(fuses),
      prepared_(prepare_run(g, fetches, feeds, placement_.get())) {
  controls_.resize(prepared_.steps.size());
  for (size_t i = 0; i < prepared_.steps.size(); i++) {
    const PreparedRun::Step& step = prepared_.steps[i];
    if (step.move || !g.nodes[step.node].control) continue;
    std::vector<uint8_t> wanted;
    for (uint32_t slot : prepared_.outputs(step)) wanted.push_back(slot != PreparedRun::none);
    controls_[i] = std::make_unique<ControlRunner>(g, step.node, wanted, placement_.get(), fuses_);
  }
}
Runner::~Runner() = default;

std::string Runner::text() {
  std::lock_guard lock(mutex_);
  if (idle_.empty()) return "is running for the first time\n";
  const Frame& f = *idle_.back();
  return f.arena.text(graph_, prepared_, f.signatures(), f.joined.get(), f.laid_out != 0, f.moved_bytes);
}

void Runner::run(Tensor* const* feeds, const TensorRef* variables, TensorRef* results, TensorRef* commits,
                 const Bindings* around) {
  check_forked();
  Scoped<ItemLog*> unheard(ambient().items, nullptr);  // what nodes are composed of is no item of a compiled function
  Scoped<bool> no_grad(ambient().grad_enabled, false);
  Scoped<bool> no_lines(ambient().log_placement, false);  // where nodes run was said when they were recorded
  Scoped<Graph*> eager(ambient().graph, nullptr);
  Scoped<const Autocast*> no_casts(ambient().autocast, nullptr);  // the graph holds those it was recorded with
  Scoped<Condition*> no_condition(ambient().condition, nullptr);
  Scoped<int32_t> no_scope(ambient().device, -1);
  ProfileSpan span;
  Lease lease(*this);
  if (!lease.frame) lease.frame = std::make_unique<Frame>(graph_, prepared_, placement_.get(), controls_, fuses_);
  lease.frame->run(feeds, variables, results, commits, around);
  span.done(ProfileKind::plan, "run of a graph", -1);
}

}  // namespace perigee
