// SPDX-License-Identifier: Apache-2.0
// Comparing what a call asks for with plans, and handing out tensors that have no contents as yet.
#include <cstring>

#include "compile/compiled.hpp"

namespace perigee {
namespace {

constexpr uint64_t outside_bit = 1u << 23;
constexpr uint32_t most_stretches = 1000;  // of a call; what comes behind them is eager
constexpr uint64_t retry_every = 64;       // calls, after which it is tried again to plan what could not be

bool fail(std::string* why, std::string text) {
  if (why != nullptr) *why = std::move(text);
  return false;
}

const char* kind_name(ItemKind kind, const Op* op) {
  switch (kind) {
    case ItemKind::op: return op->info->name;
    case ItemKind::backward: return "backward";
    case ItemKind::clear_grads: return "zero_grad";
    case ItemKind::set_grad: return "setting .grad";
    case ItemKind::custom: return "custom_grad";
    default: return "detach";
  }
}

std::string describe(const Meta& meta) { return std::string(pg::dtype_name(meta.dtype)) + " " + shape_text(meta); }

std::pair<uint64_t, uint32_t> describe(const Autocast& scope) {
  uint64_t hash = scope.otherwise;
  for (auto& [type, dtype] : scope.by_type) hash = hash * 1099511628211u ^ std::hash<std::string>()(type) ^ dtype;
  return {hash, static_cast<uint32_t>(scope.by_type.size())};
}

}  // namespace

uint64_t Compiled::next_serial() {
  static std::atomic<uint64_t> counter{0};
  return ++counter;
}

// ---- a call ----

void Compiled::begin() {
  calls_++;
  last_why_.clear();
  if (generation_ != signature_generation()) plans_.clear();  // other kernels may serve now
  generation_ = signature_generation();
  list_ = &plans_;
  stretches_ = 0;
  if (calls_ == 1) return begin_eager();  // what is made once, lazily, is no part of a plan
  begin_stretch();
}

void Compiled::begin_eager() {
  eager_++;
  mode_ = Mode::eager;
  ambient().items = nullptr;
}

void Compiled::begin_stretch() {
  tensors_.clear();
  storages_.clear();
  scopes_.clear();
  undo_.clear();
  at_ = 0;
  plan_ = nullptr;
  if (++stretches_ > most_stretches) {
    note(pg::format("a call has more than %u stretches", most_stretches));
    return begin_eager();
  }
  bool hopeless = false;
  for (auto& p : *list_) {
    hopeless |= !p->barred.empty();
    if (plan_ == nullptr && p->barred.empty()) plan_ = p.get();
  }
  if (plan_ == nullptr && hopeless && calls_ % retry_every != 0) return begin_eager();
  if (plan_ == nullptr) return start_recording();
  serial_ = next_serial();
  storages_.resize(plan_->slots.size());
  mode_ = Mode::matching;
  ambient().items = this;
}

void Compiled::start_recording() {
  serial_ = next_serial();
  recording_ = std::make_unique<Plan>();
  live_before_ = live_bytes();
  scopes_.clear();
  offsets_.clear();
  leaves_.clear();
  known_operands_.clear();
  barred_.clear();
  met_.clear();
  mode_ = Mode::recording;
  ambient().items = this;
}

void Compiled::settle(const Tensor& x) {
  if (is_mine(x.mark) || (x.storage && is_mine(x.storage->mark))) settle();
}

void Compiled::settle() {
  if (end_stretch()) begin_stretch();
}

bool Compiled::end_stretch() {
  if (open_) {
    give_up_pass("a gradient that Lua computes reads a value");
    return false;
  }
  if (mode_ == Mode::matching) {
    if (at_ == 0) return false;
    if (complete()) {
      if (finish()) return true;
    } else {
      replay("a value is read, or the call ends, earlier than in any plan");
    }
  }
  if (mode_ != Mode::recording || recording_->items.empty()) return false;
  end_recording();
  return true;
}

void Compiled::end() {
  struct Leave {
    Compiled& c;
    bool left = false;
    void leave() {
      c.mode_ = Mode::off;
      c.tensors_.clear();
      c.storages_.clear();
      c.scopes_.clear();
      c.undo_.clear();
      c.forget_customs();
      c.open_ = nullptr;
      c.leaves_.clear();
      c.met_.clear();
      c.recording_ = nullptr;
      ambient().items = nullptr;
    }
  } leave{*this};
  end_stretch();
  leave.leave();
}

void Compiled::abort() {
  try {
    if (mode_ == Mode::matching && at_ > 0) replay("the script raised an error");
  } catch (const pg::Error&) {  // the script's own error is the one to show
  }
  recording_ = nullptr;
  open_ = nullptr;
  mode_ = Mode::eager;
  end();
}

// ---- items ----

uint32_t Compiled::scope_index() {
  const Autocast* now = ambient().autocast;
  if (now == nullptr) return 0;
  for (size_t i = 0; i < scopes_.size(); i++)
    if (scopes_[i].get() == now) return static_cast<uint32_t>(i + 1);
  scopes_.push_back(AutocastRef::share(const_cast<Autocast*>(now)));
  if (mode_ == Mode::recording) recording_->scopes.push_back(describe(*now));
  return static_cast<uint32_t>(scopes_.size());
}

Surroundings Compiled::surroundings() {
  const Ambient& a = ambient();
  return {a.grad_enabled, a.device, a.stream, a.default_dtype, scope_index()};
}

bool Compiled::same_scope(const Plan& plan, const Surroundings& around) {
  return around.autocast == 0 ||
         (around.autocast <= plan.scopes.size() && plan.scopes[around.autocast - 1] == describe(*ambient().autocast));
}

bool Compiled::match(const Asked& asked) {
  const auto before = static_cast<uint32_t>(tensors_.size());
  std::string why;
  if (match_with(*plan_, asked, &why)) {
    accept(asked);
    return true;
  }
  forget_from(before);
  for (auto& p : *list_) {
    if (p.get() == plan_ || !p->barred.empty() || p->items.size() <= at_ || !same_until(*plan_, *p, at_)) continue;
    if (match_with(*p, asked, nullptr)) {
      move_to_plan(*p);
      accept(asked);
      return true;
    }
    forget_from(before);
  }
  replay(why);
  return false;
}

// What has been taken over from the arguments so far stands in the other plan too.
void Compiled::move_to_plan(Plan& plan) {
  for (size_t i = 0; i < at_; i++) {
    const Item &from = plan_->items[i], &to = plan.items[i];
    if (from.launch != no_number) plan.launches[to.launch].attrs = plan_->launches[from.launch].attrs;
  }
  storages_.resize(std::max(storages_.size(), plan.slots.size()));
  plan_ = &plan;
}

bool Compiled::match_with(const Plan& plan, const Asked& asked, std::string* why) {
  if (at_ >= plan.items.size())
    return fail(why, std::string(kind_name(asked.kind, asked.op)) + " is called where a plan ends");
  const Item& item = plan.items[at_];
  if (item.kind != asked.kind || item.op != asked.op)
    return fail(why, std::string(kind_name(asked.kind, asked.op)) + " is called where a plan has " +
                         kind_name(item.kind, item.op));
  const char* name = kind_name(item.kind, item.op);
  if (item.flags != asked.flags || !(item.around == surroundings()))
    return fail(why, std::string(name) + ": the mode, device, default dtype or autocast is another one");
  if (!same_scope(plan, item.around)) return fail(why, std::string(name) + ": autocast is another one");
  if (asked.kind == ItemKind::op) {
    const size_t groups = asked.groups != nullptr ? asked.op->info->input_count : 0;
    if (item.outputs.size() != asked.output_count || item.groups.size() != groups ||
        (groups != 0 && std::memcmp(item.groups.data(), asked.groups, groups * sizeof(uint32_t)) != 0))
      return fail(why, std::string(name) + ": the number of tensors is another one");
    const uint32_t fixed = item.launch != no_number ? asked.op->info->static_size : asked.op->info->attr_size;
    if (fixed > 0 && std::memcmp(item.attrs.data(), asked.attrs, fixed) != 0)
      return fail(why, std::string(name) + ": an option is another one, or a number that gradients are computed with");
  }
  return match_numbers(plan, asked, item, why);
}

bool Compiled::match_numbers(const Plan& plan, const Asked& asked, const Item& item, std::string* why) {
  size_t at = 0;
  const size_t leaves = asked.kind == ItemKind::backward ? item.inputs.size() - asked.input_count : 0;
  if (item.inputs.size() < asked.input_count || (leaves == 0 && item.inputs.size() != asked.input_count))
    return fail(why, std::string(kind_name(item.kind, item.op)) + ": the number of tensors is another one");
  for (; at < asked.input_count; at++)
    if (!match_input(plan, item.inputs[at], asked.inputs[at], why)) return false;
  if (asked.kind != ItemKind::backward) return true;
  // What leaves hold already is added to: those that were met so far, in the order of their numbers.
  for (uint32_t n = 0, reached = static_cast<uint32_t>(tensors_.size()); n < reached; n++) {
    if (!plan.tensors[n].outside || plan.tensors[n].leaf == 0) continue;
    if (at == item.inputs.size()) return fail(why, "backward: other tensors require gradients");
    TensorRef* gradient = gradient_of(*tensors_[n]);
    if (!match_input(plan, item.inputs[at++], gradient != nullptr ? gradient->get() : nullptr, why)) return false;
  }
  return at == item.inputs.size() || fail(why, "backward: other tensors require gradients");
}

bool Compiled::match_input(const Plan& plan, uint32_t number, Tensor* x, std::string* why) {
  if (x == nullptr || number == no_number)
    return (x == nullptr && number == no_number) ||
           fail(why, "a tensor, or a gradient, is there in one of the two only");
  if (is_mine(x->mark)) return (x->mark & 0xffffff) == number || fail(why, "an input is another tensor of the call");
  if (number != tensors_.size() || !plan.tensors[number].outside)
    return fail(why, "an input comes from outside where a plan has another one");
  const TensorPlan& t = plan.tensors[number];
  if (t.meta.get() != x->meta.get())
    return fail(why, "an input is " + describe(*x->meta) + " where a plan has " + describe(*t.meta));
  if (t.device != x->device) return fail(why, "an input lies on " + x->device->name);
  const bool leaf = x->node && x->node->kind == NodeKind::leaf;
  if (leaf != (t.leaf != 0) || (x->node && x->node->rare) || needs_gradient(*x) != (leaf || t.derived))
    return fail(why, "an input requires gradients in another way");
  if (!x->storage) return fail(why, "an input has no contents");
  Storage& storage = *x->storage;
  if (is_mine(storage.mark)) {
    const auto base = static_cast<uint32_t>(storage.mark & (outside_bit - 1));
    if (!(storage.mark & outside_bit) || t.place.base != base || t.place.offset != x->offset - tensors_[base]->offset)
      return fail(why, "inputs share memory in another way");
  } else {
    if (t.place.base != number) return fail(why, "inputs share memory in another way");
    storage.mark = serial_ << 24 | outside_bit | number;
  }
  x->mark = serial_ << 24 | number;
  tensors_.push_back(TensorRef::share(x));
  return true;
}

void Compiled::forget_from(uint32_t number) {
  for (size_t n = number; n < tensors_.size(); n++) {
    Tensor& x = *tensors_[n];
    x.mark = 0;
    if (x.storage && x.storage->mark == (serial_ << 24 | outside_bit | n)) x.storage->mark = 0;
  }
  tensors_.resize(number);
}

Tensor& Compiled::hand_out(uint32_t number, const Item& item) {
  const TensorPlan& t = plan_->tensors[number];
  StorageRef storage;
  int64_t offset = t.place.offset;
  if (t.place.outside) {
    storage = tensors_[t.place.base]->storage;
    offset += tensors_[t.place.base]->offset;
  } else {
    StorageRef& kept = storages_[t.place.base];
    if (!kept) {
      kept = StorageRef::adopt(new Storage());
      kept->device = plan_->slots[t.place.base].device;
      kept->bytes = plan_->slots[t.place.base].bytes;
      kept->mark = serial_ << 24 | t.place.base;
    }
    storage = kept;
  }
  TensorRef made = make_tensor(t.meta, std::move(storage), offset, t.device);
  made->mark = serial_ << 24 | number;
  if (t.born) made->node = t.node;
  if (t.view) {
    Tensor& parent = *tensors_[item.inputs[0]];
    made->view = std::make_unique<ViewInfo>(ViewInfo{TensorRef::share(&parent), item.op, item.attrs, {}, 0});
    for (size_t i = 1; i < item.inputs.size(); i++)
      made->view->others.push_back(describe_only(*tensors_[item.inputs[i]]));
    made->view->epoch = base_of(parent).epoch;
  }
  tensors_.push_back(std::move(made));
  return *tensors_.back();
}

void Compiled::hand_out_made(const Item& item) {
  for (uint32_t number : item.casts) {
    const TensorPlan& t = plan_->tensors[number];
    tensors_.push_back(kept_cast(*tensors_[t.cast_of], t.meta->dtype));
  }
  for (size_t i = 0; i < item.outputs.size(); i++)
    if (item.outputs[i] != no_number && !(item.in_place && i == 0)) hand_out(item.outputs[i], item);
}

void Compiled::put_gradient(Tensor& leaf, TensorRef gradient) {
  TensorRef* place = gradient_of(leaf);
  if (place == nullptr) return;
  undo_.push_back({static_cast<uint32_t>(at_), TensorRef::share(&leaf), *place});
  *place = std::move(gradient);
}

void Compiled::accept(const Asked& asked) {
  Item& item = plan_->items[at_];
  item.origin = ambient().origin;
  if (item.launch != no_number) {
    const uint32_t from = asked.op->info->static_size, size = asked.op->info->attr_size;
    std::memcpy(plan_->launches[item.launch].attrs.data() + from, static_cast<const uint8_t*>(asked.attrs) + from,
                size - from);
  }
  hand_out_made(item);
  if (item.like) give_history(item, asked.inputs, asked.input_count);
  for (const GradientPlan& g : item.grads) {
    hand_out(g.gradient, item);
    put_gradient(*tensors_[g.leaf], tensors_.back());
  }
  for (uint32_t n : item.with_history) tensors_[n]->node = plan_->tensors[n].node;
  if (asked.kind == ItemKind::clear_grads)
    for (uint32_t i = 0; i < asked.input_count; i++) put_gradient(*asked.inputs[i], nullptr);
  if (asked.kind == ItemKind::set_grad) put_gradient(*asked.inputs[0], TensorRef::share(asked.inputs[1]));
  at_++;
}

bool Compiled::call(const Op& op, Tensor* const* inputs, uint32_t input_count, const uint32_t* groups,
                    const void* attrs, uint32_t flags, TensorRef* outputs, uint32_t output_count) {
  if (open_) {  // it belongs to the pass
    Scoped<ItemLog*> alone(ambient().items, nullptr);
    Scoped<LaunchLog*> listen(ambient().launches, this);
    perigee::call(op, inputs, input_count, groups, attrs, flags, outputs, output_count);
    return true;
  }
  if (const char* why = not_an_item(op, inputs, input_count)) {
    apart_++;
    settle();
    last_why_ = std::string(op.info->name) + " ends a stretch: " + why;
    if (mode_ != Mode::eager) note(last_why_);
    Scoped<ItemLog*> alone(ambient().items, nullptr);
    perigee::call(op, inputs, input_count, groups, attrs, flags, outputs, output_count);
    return true;
  }
  if (mode_ == Mode::matching && match({ItemKind::op, &op, flags, inputs, input_count, groups, attrs, output_count})) {
    const Item& item = plan_->items[at_ - 1];
    for (uint32_t i = 0; i < output_count; i++)
      if (item.outputs[i] != no_number) outputs[i] = tensors_[item.outputs[i]];
    return true;
  }
  return mode_ == Mode::recording && record_call(op, inputs, input_count, groups, attrs, flags, outputs, output_count);
}

}  // namespace perigee
