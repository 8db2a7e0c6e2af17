// SPDX-License-Identifier: Apache-2.0
// Listening to an eager run: its items, and what they launch.
#include <algorithm>
#include <cstring>

#include "compile/capture.hpp"
#include "compile/compiled.hpp"

namespace perigee {
namespace {

constexpr uint64_t outside_bit = 1u << 23;
constexpr size_t most_plans = 16;  // of those that begin alike

bool has_history(const Tensor& x) { return static_cast<bool>(x.node); }

}  // namespace

const char* Compiled::why_watched() {
  const Ambient& a = ambient();
  if (a.condition != nullptr) return "a step that may have to be skipped";
  if (a.detect_anomaly || a.log_placement || a.graph != nullptr) return "every operator is watched";
  return nullptr;
}

const char* Compiled::not_an_item(const Op& op, Tensor* const* inputs, uint32_t input_count) {
  if (const char* why = why_watched()) return why;
  if (op.role == Role::transfer) return "a copy between devices";
  if (op.info->effect == PG_EFFECT_ORDERED) return "it has effects outside";
  for (uint32_t i = 0; i < op.info->output_count; i++)
    if (op.info->outputs[i]->flags & PG_OUTPUT_DYNAMIC) return "the size of its result is not known before";
  for (uint32_t i = 0; i < input_count; i++)
    if (inputs[i] != nullptr && inputs[i]->is_graph()) return "it is recorded into a graph";
  return nullptr;
}

uint32_t Compiled::number_of(Tensor& x) {
  if (is_mine(x.mark)) return static_cast<uint32_t>(x.mark & 0xffffff);
  const auto number = static_cast<uint32_t>(recording_->tensors.size());
  TensorPlan& t = recording_->tensors.emplace_back();
  if (number >= outside_bit - 1) pg::fail(PG_E_FAILED_PRECONDITION, "a compiled call has too many tensors");
  t.outside = true;
  t.meta = x.meta;
  t.device = x.device;
  t.leaf = x.node && x.node->kind == NodeKind::leaf;
  offsets_.resize(number + 1, 0);
  offsets_[number] = x.offset;
  t.derived = t.leaf == 0 && needs_gradient(x);
  if (x.node && x.node->rare) refuse("a tensor from outside has a hook, or retains its gradient");
  if (t.leaf != 0) leaves_.push_back(TensorRef::share(&x));
  if (freezes_) met_.emplace_back(number, TensorRef::share(&x));
  if (!x.storage) {
    refuse("an input has no contents");
  } else if (is_mine(x.storage->mark)) {
    if (!(x.storage->mark & outside_bit)) {
      refuse("a tensor was made by no operator of the call");
    } else {
      const auto base = static_cast<uint32_t>(x.storage->mark & (outside_bit - 1));
      t.place = {base, true, x.offset - offsets_[base]};
    }
  } else {
    x.storage->mark = serial_ << 24 | outside_bit | number;
    t.place = {number, true, 0};
  }
  x.mark = serial_ << 24 | number;
  return number;
}

// What they are used for adds to their histories.
void Compiled::refuse_derived(const std::vector<uint32_t>& numbers) {
  for (uint32_t n : numbers)
    if (n != no_number && recording_->tensors[n].derived)
      refuse("an argument has a history that begins outside of the call");
}

MemoryPlace Compiled::place_of(const Tensor& x) {
  if (x.storage && is_mine(x.storage->mark)) {
    const auto base = static_cast<uint32_t>(x.storage->mark & (outside_bit - 1));
    if (!(x.storage->mark & outside_bit)) return {base, false, x.offset};
    return {base, true, x.offset - offsets_[base]};
  }
  refuse(
      "an operator uses memory that the call has not named: a cast that was kept from before it, or a cached tensor");
  return {0, true, 0};
}

uint32_t Compiled::add_made(Tensor& x, bool view) {
  const auto number = static_cast<uint32_t>(recording_->tensors.size());
  if (is_mine(x.mark)) refuse("an operator answers with its input");
  TensorPlan& t = recording_->tensors.emplace_back();
  t.meta = x.meta;
  t.device = x.device;
  t.view = view && x.view;
  t.node = x.node;
  t.born = has_history(x);
  MemoryPlace place = place_of(x);
  recording_->tensors[number].place = place;
  offsets_.resize(number + 1, 0);
  x.mark = serial_ << 24 | number;
  return number;
}

uint32_t Compiled::operand_of(Tensor* x) {
  if (x == nullptr || !x->storage) return no_number;
  const MemoryPlace place = place_of(*x);
  auto [it, fresh] = known_operands_.try_emplace({place.base, place.outside, place.offset, x->meta.get()}, 0);
  if (fresh) {
    it->second = static_cast<uint32_t>(recording_->operands.size());
    recording_->operands.push_back({place, make_tensor(x->meta, nullptr, place.offset, x->device)});
  }
  if (!place.outside && place.base < recording_->slots.size()) {
    Slot& s = recording_->slots[place.base];
    s.last = static_cast<uint32_t>(recording_->launches.size());
    if (s.first == no_number) s.first = s.last;
  }
  return it->second;
}

// ---- what an item launches ----

void Compiled::allocated(Storage& storage) {
  if (!recording_->slots.empty() && recording_->slots[0].device != storage.device) refuse("it uses several devices");
  storage.mark = serial_ << 24 | recording_->slots.size();
  recording_->slots.push_back({storage.device, storage.bytes});
}

void Compiled::launched(Signature& s, Tensor* const* inputs, uint32_t input_count, Tensor* const* outputs,
                        uint32_t output_count, const void* attrs) {
  if (s.dynamic) refuse("the size of a result is not known before");
  Launch l;
  l.signature = SignatureRef::share(&s);
  l.item = static_cast<uint32_t>(recording_->items.size());
  for (uint32_t i = 0; i < input_count; i++) l.inputs.push_back(operand_of(inputs[i]));
  for (uint32_t i = 0; i < output_count; i++) l.outputs.push_back(operand_of(outputs[i]));
  auto* bytes = static_cast<const uint8_t*>(attrs);
  l.attrs.assign(bytes, bytes + s.op->info->attr_size);
  recording_->launches.push_back(std::move(l));
  const uint64_t taken = live_bytes() + s.workspace;
  if (taken > live_before_) recording_->eager_peak = std::max(recording_->eager_peak, taken - live_before_);
}

// Known by now is what kernels ask for besides: memory that lives for one launch.
void Compiled::add_workspaces() {
  Plan& plan = *recording_;
  for (uint32_t i = 0; i < plan.launches.size(); i++) {
    Launch& l = plan.launches[i];
    if (!l.signature || l.signature->workspace == 0 || l.signature->how != How::kernel) continue;
    if (!plan.slots.empty() && plan.slots[0].device != l.signature->device) continue;
    l.workspace = static_cast<uint32_t>(plan.slots.size());
    plan.slots.push_back({l.signature->device, l.signature->workspace, i, i});
  }
}

void Compiled::copied(Tensor& target, Tensor& source) {
  Launch l;
  l.item = static_cast<uint32_t>(recording_->items.size());
  l.inputs.push_back(operand_of(&source));
  l.outputs.push_back(operand_of(&target));
  recording_->launches.push_back(std::move(l));
}

// From outside, and nobody names it but the tensor that it was made of.
void Compiled::kept(Tensor& x, Tensor& cast) {
  if (is_mine(cast.storage->mark) || !is_mine(x.mark) || !recording_->tensors[x.mark & 0xffffff].outside) return;
  const auto number = static_cast<uint32_t>(recording_->tensors.size());
  TensorPlan& t = recording_->tensors.emplace_back();
  t.outside = true;
  t.meta = cast.meta;
  t.device = cast.device;
  t.cast_of = static_cast<uint32_t>(x.mark & 0xffffff);
  t.place = {number, true, 0};
  offsets_.resize(number + 1, 0);
  offsets_[number] = cast.offset;
  cast.mark = serial_ << 24 | number;
  cast.storage->mark = serial_ << 24 | outside_bit | number;
  casts_.push_back(number);
}

void Compiled::raised(Tensor& tensor) {
  if (recording_->launches.empty()) return refuse("a write comes before anything is launched");
  recording_->launches.back().raised.push_back(operand_of(&tensor));
}

void Compiled::refuse(const std::string& why) {
  if (barred_.empty()) barred_ = why;
}

// ---- items ----

Item& Compiled::add_item(const Asked& asked) {
  Item item;
  item.kind = asked.kind;
  item.op = asked.op;
  item.flags = asked.flags;
  item.around = surroundings();
  item.origin = ambient().origin;
  for (uint32_t i = 0; i < asked.input_count; i++)
    item.inputs.push_back(asked.inputs[i] != nullptr ? number_of(*asked.inputs[i]) : no_number);
  if (asked.op != nullptr) {
    if (asked.groups != nullptr) item.groups.assign(asked.groups, asked.groups + asked.op->info->input_count);
    auto* bytes = static_cast<const uint8_t*>(asked.attrs);
    item.attrs.assign(bytes, bytes + asked.op->info->attr_size);
  }
  recording_->items.push_back(std::move(item));
  return recording_->items.back();
}

bool Compiled::record_call(const Op& op, Tensor* const* inputs, uint32_t input_count, const uint32_t* groups,
                           const void* attrs, uint32_t flags, TensorRef* outputs, uint32_t output_count) {
  const size_t first = recording_->launches.size();
  Item item = add_item({ItemKind::op, &op, flags, inputs, input_count, groups, attrs, output_count});
  recording_->items.pop_back();  // launches count the items before theirs
  casts_.clear();
  Tensor* target = input_count > 0 ? inputs[0] : nullptr;
  Tensor* base = target != nullptr ? &base_of(*target) : nullptr;
  const Node *before = target != nullptr ? target->node.get() : nullptr,
             *base_before = base != nullptr ? base->node.get() : nullptr;
  try {
    Scoped<ItemLog*> alone(ambient().items, nullptr);
    Scoped<LaunchLog*> listen(ambient().launches, this);
    perigee::call(op, inputs, input_count, groups, attrs, flags, outputs, output_count);
  } catch (const pg::Error&) {
    recording_->launches.resize(first);
    refuse("an operator raised an error");
    throw;
  }
  item.casts = std::move(casts_);
  item.in_place = output_count > 0 && target != nullptr && outputs[0].get() == target;
  bool differentiable = false;
  for (uint32_t i = 0; i < output_count; i++) {
    if (item.in_place && i == 0) {
      item.outputs.push_back(item.inputs[0]);
    } else {
      item.outputs.push_back(outputs[i] ? add_made(*outputs[i], i < op.visible_outputs && input_count > 0) : no_number);
    }
    differentiable |= outputs[i] && has_history(*outputs[i]);
  }
  if (differentiable) refuse_derived(item.inputs);
  auto changed = [&](Tensor& x, const Node* was) {
    if (x.node.get() == was) return;
    TensorPlan* t = is_mine(x.mark) ? &recording_->tensors[x.mark & 0xffffff] : nullptr;
    if (t == nullptr || t->outside) return refuse("a tensor from outside gets a history in the call");
    t->node = x.node;
    if (was == nullptr) item.with_history.push_back(static_cast<uint32_t>(x.mark & 0xffffff));
  };
  if (item.in_place) changed(*target, before);
  if (item.in_place && base != target) changed(*base, base_before);
  // Its numbers may change where nothing but its own kernel looks at them.
  const uint32_t fixed = op.info->static_size, size = op.info->attr_size;
  uint32_t own = no_number, count = 0;
  for (size_t i = first; i < recording_->launches.size(); i++) {
    const Launch& l = recording_->launches[i];
    if (l.signature && l.signature->op == &op) own = static_cast<uint32_t>(i), count++;
    if (l.signature && l.signature->op != &op && l.signature->op->role != Role::cast) count = 2;
  }
  if (!differentiable && count == 1 && size > fixed &&
      std::memcmp(recording_->launches[own].attrs.data() + fixed, item.attrs.data() + fixed, size - fixed) == 0)
    item.launch = own;
  recording_->items.push_back(std::move(item));
  return true;
}

void Compiled::clear_grads(Tensor* const* tensors, uint32_t count) {
  if (open_) give_up_pass("a gradient that Lua computes clears others");
  const Asked asked{ItemKind::clear_grads, nullptr, 0, tensors, count, nullptr, nullptr, 0};
  if (mode_ == Mode::matching && match(asked)) return;
  if (mode_ == Mode::recording) add_item(asked);
  for (uint32_t i = 0; i < count; i++)
    if (TensorRef* gradient = gradient_of(*tensors[i])) *gradient = nullptr;
}

void Compiled::set_grad(Tensor& x, Tensor* gradient) {
  if (open_) give_up_pass("a gradient that Lua computes sets others");
  Tensor* inputs[2] = {&x, gradient};
  const Asked asked{ItemKind::set_grad, nullptr, 0, inputs, 2, nullptr, nullptr, 0};
  if (mode_ == Mode::matching && match(asked)) return;
  if (mode_ == Mode::recording) add_item(asked);
  if (TensorRef* place = gradient_of(x)) *place = TensorRef::share(gradient);
}

TensorRef Compiled::detach(Tensor& x) {
  if (open_) return alias(x);
  Tensor* input = &x;
  const Asked asked{ItemKind::detach, nullptr, 0, &input, 1, nullptr, nullptr, 1};
  if (mode_ == Mode::matching && match(asked)) return tensors_[plan_->items[at_ - 1].outputs[0]];
  TensorRef made = alias(x);
  if (mode_ != Mode::recording) return made;
  Item& item = add_item(asked);
  const uint32_t number = add_made(*made, false);
  item.outputs.push_back(number);
  return made;
}

// ---- the end of a stretch ----

void Compiled::end_recording() {
  recorded_++;
  std::unique_ptr<Plan> plan = std::move(recording_);
  Plans& list = *list_;
  if (!barred_.empty()) {
    note(barred_);
    std::erase_if(list, [](auto& p) { return !p->barred.empty(); });
    plan = std::make_unique<Plan>();
    plan->barred = barred_;
  } else {
    recording_ = std::move(plan);
    find_histories();
    add_workspaces();
    plan = std::move(recording_);
    plan->fuse = fuse_;
    std::erase_if(list, [&](auto& p) {
      if (!p->barred.empty() || p->items.size() != plan->items.size() || !same_until(*p, *plan, plan->items.size()))
        return false;
      plan->failures = p->failures;
      plan->after = std::move(p->after);
      return true;
    });
  }
  list.push_front(std::move(plan));
  if (list.size() > most_plans) list.pop_back();
  list_ = &list.front()->after;
}

// ---- what is shown ----

std::string Compiled::text() const {
  auto quoted = [](const std::string& s) {
    std::string out = "\"";
    for (char c : s) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    return out + "\"";
  };
  // The regions of a plan as it was launched last.
  auto regions = [](const Plan& p) {
    std::string text;
    for (const auto& region : p.regions) {
      const RegionKernel* kernel = region->kernels.empty() ? nullptr : region->kernels.front().get();
      if (kernel == nullptr) continue;
      const bool joined = kernel->prepared != nullptr || kernel->outputs.empty();
      text += (text.empty() ? "" : ",") +
              pg::format(
                  "{\"operators\":\"%s\",\"by\":\"%s\",\"nodes\":%zu,\"inputs\":%zu,\"outputs\":%zu,\"joined\":%s,"
                  "\"about\":\"%s\",\"packed\":%llu}",
                  region->names, region->by->name.c_str(), region->view.nodes.size(), kernel->input_operands.size(),
                  kernel->outputs.size(), joined ? "true" : "false",
                  kernel->description != nullptr ? kernel->description : "",
                  static_cast<unsigned long long>(kernel->pack_bytes));
    }
    return text;
  };
  size_t plans = 0;
  std::string rows;
  auto row = [&](const Plan& p) {
    plans += p.barred.empty();
    uint64_t separate = 0;
    for (const Slot& s : p.slots) separate += s.first != no_number ? s.bytes : 0;
    rows += (rows.empty() ? "" : ",") +
            pg::format(
                "{\"items\":%zu,\"layers\":%zu,\"launches\":%zu,\"kernels\":%zu,\"uses\":%llu,\"bytes\":%llu,\"bound\":"
                "%llu,"
                "\"separate\":%llu,"
                "\"own\":%llu,\"eager_peak\":%llu",
                p.items.size(), p.layers.size(), p.launches.size(), p.arena ? p.steps.size() : p.launches.size(),
                static_cast<unsigned long long>(p.uses), static_cast<unsigned long long>(p.arena_bytes),
                static_cast<unsigned long long>(p.bound), static_cast<unsigned long long>(separate),
                static_cast<unsigned long long>(p.own_bytes), static_cast<unsigned long long>(p.eager_peak)) +
            ",\"regions\":[" + regions(p) + "]" + (p.captured ? "," + p.captured->text() : "") +
            (p.barred.empty() ? "" : ",\"refused\":" + quoted(p.barred)) + "}";
  };
  auto visit = [&](auto&& self, const Plans& list) -> void {
    for (auto& p : list) {
      row(*p);
      self(self, p->after);
    }
  };
  for (auto f = frozen_.rbegin(); f != frozen_.rend(); ++f)
    if ((*f)->plan) row(*(*f)->plan);
  visit(visit, plans_);
  std::string reasons;
  for (auto& [why, times] : why_) reasons += (reasons.empty() ? "" : ",") + quoted(why) + ":" + std::to_string(times);
  return pg::format("{\"calls\":%llu,\"hits\":%llu,\"recorded\":%llu,\"replayed\":%llu,\"eager\":%llu,\"plans\":%zu",
                    static_cast<unsigned long long>(calls_), static_cast<unsigned long long>(hits_),
                    static_cast<unsigned long long>(recorded_), static_cast<unsigned long long>(replayed_),
                    static_cast<unsigned long long>(eager_), plans) +
         ",\"why\":{" + reasons + "},\"stretches\":[" + rows + "]}";
}

}  // namespace perigee
