// SPDX-License-Identifier: Apache-2.0
// The end of a stretch that was matched: its plan is launched, or what it asked for is called eagerly after all.
#include "base/profile.hpp"
#include "compile/capture.hpp"
#include "compile/compiled.hpp"
#include "tape/custom.hpp"
#include "tensor/kept.hpp"

namespace perigee {
namespace {

constexpr uint32_t most_failures = 3;

// `pending` becomes what `made` is: whoever holds it sees the result.
void take_over(Tensor& pending, Tensor& made) {
  pending.meta = made.meta;
  pending.storage = made.storage;
  pending.offset = made.offset;
  pending.device = made.device;
  pending.node = made.node;
  pending.output = made.output;
  pending.requires_grad = made.requires_grad;
  pending.view = made.view ? std::make_unique<ViewInfo>(*made.view) : nullptr;
  pending.epoch = made.epoch;
  pending.mark = made.mark;
}

}  // namespace

bool Compiled::complete() {
  if (at_ == plan_->items.size()) return true;
  for (auto& p : *list_) {
    if (!p->barred.empty() || p->items.size() != at_ || !same_until(*plan_, *p, at_)) continue;
    move_to_plan(*p);
    return true;
  }
  return false;
}

// Nobody will ask for the gradients of nodes that have been gone through.
void Compiled::forget_customs() {
  for (uint64_t number : customs_) forget_custom(number);
  customs_.clear();
}

bool Compiled::find_outliving(const Plan& plan) {
  outliving_.assign(plan.slots.size(), 0);
  SmallVector<uint32_t, 64> views(tensors_.size());  // by tensor: those of it that nobody else holds
  for (size_t n = tensors_.size(); n-- > 0;) {
    const TensorPlan& t = plan.tensors[n];
    if (t.outside) continue;
    if (tensors_[n]->refs.load(std::memory_order_relaxed) == 1 + views[n]) {
      if (tensors_[n]->view && is_mine(tensors_[n]->view->parent->mark))
        views[tensors_[n]->view->parent->mark & 0xffffff]++;
      continue;
    }
    if (t.history == History::alive) return false;
    if (!t.place.outside) outliving_[t.place.base] = 1;
  }
  return true;
}

bool Compiled::replay_outliving() {
  Plan& plan = *plan_;
  std::string why = "a tensor with a history that backward has not gone through is read, returned or kept";
  const bool again = ++plan.failures < most_failures;  // it may be a dead tensor that was not collected yet
  replay(why);
  if (again) return false;
  barred_ = why;
  std::erase_if(*list_, [&](auto& p) { return p.get() == &plan; });
  return false;
}

bool Compiled::finish() {
  Plan& plan = *plan_;
  if (!find_outliving(plan)) return replay_outliving();
  // Gradients that were let go of before anything is launched need not come back: eager code has freed them by now.
  const uint32_t first = plan.launches.empty() ? 0 : plan.launches.front().item;
  std::erase_if(undo_, [&](const Undo& u) { return u.item < first; });
  struct Release {  // also where memory runs out half-way
    Plan& plan;
    ~Release() {
      for (uint32_t o : plan.loose) take_back(*plan.operands[o].tensor);
      if (plan.arena && plan.arena->block != nullptr && !(plan.captured && plan.captured->holds_arena()))
        plan.arena->device->allocator.free(std::exchange(plan.arena->block, nullptr));
    }
  } release{plan};
  allocate_for(plan, outliving_);
  run_launches(plan);
  forget_customs();
  hits_++;
  plan.failures = 0;
  plan.uses++;
  for (auto p = list_->begin(); p != list_->end(); ++p)
    if (p->get() == &plan && p != list_->begin()) {
      list_->splice(list_->begin(), *list_, p);
      break;
    }
  list_ = &plan.after;
  return true;
}

// All that can run out comes before the first write; large blocks come before what would cut their place into pieces.
void Compiled::allocate_for(Plan& plan, const std::vector<uint8_t>& outliving) {
  plan.lay_out(outliving);
  const uint32_t stream = ambient().stream;
  auto allocate = [&](Storage& storage, uint64_t bytes) {
    if (storage.block != nullptr) return;
    storage.last_stream = storage.device->synchronous ? 0 : stream;
    storage.behind = 0;
    storage.done = Event();
    storage.block = storage.device->allocator.alloc(bytes, storage.last_stream, {"pg.compile"});
  };
  bool done = plan.arena_bytes == 0;
  for (uint32_t s : plan.own) {
    if (!done && plan.arena_bytes >= plan.slots[s].bytes) allocate(*plan.arena, plan.arena_bytes), done = true;
    if (storages_[s]) allocate(*storages_[s], plan.slots[s].bytes);
  }
  if (!done) allocate(*plan.arena, plan.arena_bytes);
  for (uint32_t o : plan.loose) {
    const MemoryPlace& place = plan.operands[o].place;
    Tensor& x = *plan.operands[o].tensor;
    lend(x, place.outside ? tensors_[place.base]->storage : storages_[place.base]);
    x.offset = place.offset + (place.outside ? tensors_[place.base]->offset : 0);
  }
}

void launch_step(Plan& plan, const PlanStep& step, Running& running) {
  auto at = [&](uint32_t o) { return o == no_number ? nullptr : plan.operands[o].tensor.get(); };
  const Launch& l = plan.launches[step.region != nullptr ? step.region->view.launches.front() : step.launch];
  running = {l.item, nullptr};  // of a region what fails says which
  Scoped<const char*> origin(ambient().origin, plan.items[l.item].origin);
  if (step.region != nullptr) return step.region->launch(plan, *step.kernel);
  SmallVector<Tensor*, 8> inputs(l.inputs.size()), outputs(l.outputs.size());
  for (size_t i = 0; i < inputs.size(); i++) inputs[i] = at(l.inputs[i]);
  for (size_t i = 0; i < outputs.size(); i++) outputs[i] = at(l.outputs[i]);
  if (!l.signature) return copy_into(*outputs[0], *inputs[0], "copy");
  running.op = l.signature->op;
  launch_again(*l.signature, inputs.data(), outputs.data(), l.attrs.data(), plan.workspace_of(l));
}

void note_step(Plan& plan, const PlanStep& step) {
  // Packed forms of what was there are stale. No other thread has the arena.
  plan.arena->version.store(plan.arena->version.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  for (uint32_t o : step.region != nullptr ? step.region->raised : plan.launches[step.launch].raised)
    raise_version(*plan.operands[o].tensor->storage);
}

void Compiled::run_launches(Plan& plan) {
  Scoped<ItemLog*> alone(ambient().items, nullptr);
  Scoped<bool> no_grad(ambient().grad_enabled, false);
  Scoped<const Autocast*> no_casts(ambient().autocast, nullptr);
  Scoped<int32_t> no_scope(ambient().device, -1);
  Running running;
  ProfileSpan span;
  try {
    if (capture_ && !plan.captured) plan.captured = std::make_shared<Captured>();
    if (!capture_ || !plan.captured->run(plan, {tensors_, storages_}, running))
      for (const PlanStep& step : plan.steps) {
        launch_step(plan, step, running);
        note_step(plan, step);
      }
  } catch (const pg::Error& e) {
    // What came before has happened, as in eager code; what came behind has not.
    undo_gradients(running.item);
    mode_ = Mode::eager;
    ambient().items = nullptr;
    throw pg::Error(e.code, (running.op != nullptr ? std::string(running.op->info->name) + ": " : "") + e.what(),
                    e.native, e.flags);
  }
  span.done(ProfileKind::plan, "run of a compiled function", -1);
}

void Compiled::undo_gradients(uint32_t from) {
  while (!undo_.empty() && undo_.back().item >= from) {
    *gradient_of(*undo_.back().leaf) = std::move(undo_.back().before);
    undo_.pop_back();
  }
}

// Calls eagerly what has been matched, which is recorded. Who holds what was handed out then holds the results.
void Compiled::replay(const std::string& why) {
  note(why);
  replayed_++;
  undo_gradients(0);
  const std::vector<TensorRef> tensors = std::move(tensors_);
  const std::vector<AutocastRef> scopes = std::move(scopes_);
  const std::vector<uint64_t> customs = std::move(customs_);
  customs_.clear();
  if (at_ > 0 && plan_->items[at_ - 1].pauses)
    at_--;  // memory ran out in it: the front end is not here to compute gradients
  tensors_.clear();
  storages_.clear();
  const Plan& plan = *plan_;
  const size_t items = at_;
  start_recording();
  size_t met = 0;
  try {
    for (size_t i = 0; i < items; i++) {
      const bool custom = plan.items[i].kind == ItemKind::custom;
      call_again(plan, plan.items[i], tensors, scopes, custom ? customs[met] : 0);
      met += custom ? 1 : 0;
    }
  } catch (const pg::Error&) {
    for (; met < customs.size(); met++) forget_custom(customs[met]);
    recording_ = nullptr;
    mode_ = Mode::eager;
    ambient().items = nullptr;
    throw;
  }
}

void Compiled::call_again(const Plan& plan, const Item& item, const std::vector<TensorRef>& tensors,
                          const std::vector<AutocastRef>& scopes, uint64_t custom) {
  Ambient& a = ambient();
  const uint32_t scope = item.around.autocast;
  Scoped<bool> grad(a.grad_enabled, item.around.grad);
  Scoped<int32_t> place(a.device, item.around.device);
  Scoped<uint32_t> stream(a.stream, item.around.stream);
  Scoped<uint32_t> dtype(a.default_dtype, item.around.dtype);
  Scoped<const Autocast*> casts(a.autocast, scope == 0 ? nullptr : scopes[scope - 1].get());
  std::vector<Tensor*> inputs;
  for (uint32_t n : item.inputs) inputs.push_back(n == no_number ? nullptr : tensors[n].get());
  switch (item.kind) {
    case ItemKind::op: {
      std::vector<TensorRef> made(item.outputs.size());
      const void* attrs = item.launch != no_number ? plan.launches[item.launch].attrs.data() : item.attrs.data();
      record_call(*item.op, inputs.data(), static_cast<uint32_t>(inputs.size()),
                  item.groups.empty() ? nullptr : item.groups.data(), attrs, item.flags, made.data(),
                  static_cast<uint32_t>(made.size()));
      for (size_t i = 0; i < made.size(); i++)
        if (item.outputs[i] != no_number && !(item.in_place && i == 0)) take_over(*tensors[item.outputs[i]], *made[i]);
      break;
    }
    case ItemKind::backward: {
      const bool seeded = (item.flags & 2u) != 0;
      BackwardCall call{inputs.data(), nullptr, item.roots, nullptr, 0, (item.flags & 1u) != 0, false, nullptr};
      if (seeded) call.seeds = inputs.data() + item.roots;
      PassRef paused;
      record_backward(call, paused);
      for (const GradientPlan& g : item.grads) {
        TensorRef* gradient = gradient_of(*tensors[g.leaf]);
        take_over(*tensors[g.gradient], **gradient);
        *gradient = tensors[g.gradient];
      }
      break;
    }
    case ItemKind::clear_grads: clear_grads(inputs.data(), static_cast<uint32_t>(inputs.size())); break;
    case ItemKind::set_grad: set_grad(*inputs[0], inputs[1]); break;
    case ItemKind::detach: take_over(*tensors[item.outputs[0]], *detach(*inputs[0])); break;
    case ItemKind::custom: {
      std::vector<TensorRef> made;
      for (size_t i = item.flags; i < inputs.size(); i++) made.push_back(TensorRef::share(inputs[i]));
      record_custom_node(inputs, item.flags, made.data(), custom);
      for (size_t i = 0; i < made.size(); i++) take_over(*tensors[item.outputs[i]], *made[i]);
      break;
    }
  }
}

}  // namespace perigee
