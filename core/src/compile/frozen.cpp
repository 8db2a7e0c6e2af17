// SPDX-License-Identifier: Apache-2.0
// Calls that are the same every time but for what their arguments hold: their plan is launched without running the
// function.
#include <set>

#include "compile/compiled.hpp"

namespace perigee {
namespace {

[[noreturn]] void fail_to_freeze(const std::string& why) {
  pg::fail(PG_E_NOT_SUPPORTED, "the function cannot be frozen: " + why);
}

// What a plan does at every launch that a frozen call must not repeat.
void check_frozen(const Plan& plan) {
  for (const Item& item : plan.items) {
    if (item.kind == ItemKind::op || item.kind == ItemKind::detach) continue;
    fail_to_freeze("it computes or changes gradients, which is for training");
  }
  for (const TensorPlan& t : plan.tensors)
    if (!t.outside && (t.history == History::alive || t.history == History::exact))
      fail_to_freeze("it records for gradients");
  for (const Launch& l : plan.launches)
    if (l.signature && l.signature->op->info->effect == PG_EFFECT_RANDOM)
      fail_to_freeze(std::string(l.signature->op->info->name) + " draws random numbers");
}

// What is the same from call to call: tensors from outside that are no arguments, share no memory with one, and that no
// launch writes to.
void mark_constants(Plan& plan, const std::vector<uint32_t>& arguments) {
  std::set<uint32_t> changing;  // where memory from outside begins
  for (uint32_t number : arguments)
    if (number != no_number && plan.tensors[number].outside) changing.insert(plan.tensors[number].place.base);
  for (const Launch& l : plan.launches)
    for (const auto* written : {&l.outputs, &l.raised})
      for (uint32_t o : *written)
        if (o != no_number && plan.operands[o].place.outside) changing.insert(plan.operands[o].place.base);
  auto changes = [&](uint32_t base) {
    const uint32_t from = plan.tensors[base].cast_of;  // a kept cast is another tensor once this has been written to
    return changing.contains(from == no_number ? base : plan.tensors[from].place.base);
  };
  for (Operand& o : plan.operands) o.constant = o.place.outside && !changes(o.place.base);
}

}  // namespace

std::vector<uint32_t> Compiled::numbers_of(Tensor* const* tensors, uint32_t count) const {
  std::vector<uint32_t> numbers;
  for (uint32_t i = 0; i < count; i++)
    numbers.push_back(is_mine(tensors[i]->mark) ? static_cast<uint32_t>(tensors[i]->mark & 0xffffff) : no_number);
  return numbers;
}

Frozen* Compiled::freeze(Tensor* const* arguments, uint32_t argument_count, Tensor* const* results,
                         uint32_t result_count, uint8_t* made) {
  if (mode_ != Mode::recording || stretches_ != 1) {
    const bool first = mode_ == Mode::eager && calls_ == 1;
    const bool parts = stretches_ > 1 && last_why_.empty();
    end();
    if (first) return nullptr;
    for (const auto& p : plans_)
      if (last_why_.empty() && !p->barred.empty()) last_why_ = p->barred;
    fail_to_freeze(parts ? "it reads a value before its end" : last_why_);
  }
  auto frozen = std::make_unique<Frozen>();
  frozen->arguments = numbers_of(arguments, argument_count);
  frozen->results = numbers_of(results, result_count);
  frozen->outside.resize(recording_->tensors.size());
  for (auto& [number, tensor] : met_) frozen->outside[number] = std::move(tensor);
  for (uint32_t number : frozen->arguments)
    if (number != no_number) frozen->outside[number] = nullptr;
  for (uint32_t i = 0; i < result_count; i++) {
    uint32_t& number = frozen->results[i];
    if (number != no_number && recording_->tensors[number].outside) number = no_number;
    made[i] = number != no_number;
  }
  const bool empty = recording_->items.empty();
  end();
  if (!last_why_.empty()) fail_to_freeze(last_why_);
  if (empty) fail_to_freeze("it computes nothing");
  Plan& plan = *plans_.front();
  if (!plan.barred.empty()) fail_to_freeze(plan.barred);
  frozen->plan = std::move(plans_.front());
  plans_.pop_front();
  frozen->plan->after.clear();
  check_frozen(*frozen->plan);
  frozen->plan->frozen = freezes_layouts_;
  if (freezes_layouts_) mark_constants(*frozen->plan, frozen->arguments);
  frozen->generation = generation_;
  for (const auto& other : frozen_)  // of other kernels: never run again, but who holds it does not know
    if (other->generation != generation_) other->plan = nullptr, other->outside.clear();
  frozen_.push_back(std::move(frozen));
  return frozen_.back().get();
}

void Compiled::release(const Frozen* frozen) {
  std::erase_if(frozen_, [&](const auto& f) { return f.get() == frozen; });
}

bool Compiled::hand_out_all(const Frozen& frozen, Tensor* const* arguments) {
  std::vector<Tensor*> given(frozen.outside.size(), nullptr);
  for (size_t n = 0; n < given.size(); n++) given[n] = frozen.outside[n].get();
  for (size_t i = 0; i < frozen.arguments.size(); i++)
    if (frozen.arguments[i] != no_number) given[frozen.arguments[i]] = arguments[i];
  for (const Item& item : plan_->items) {
    for (uint32_t number : item.inputs) {
      if (number == no_number || number < tensors_.size()) continue;
      if (!match_input(*plan_, number, given[number], nullptr)) {
        forget_from(0);
        return false;
      }
    }
    hand_out_made(item);
  }
  return true;
}

bool Compiled::run(Frozen& frozen, Tensor* const* arguments, TensorRef* results) {
  if (frozen.generation != signature_generation()) return false;
  struct Leave {
    Compiled& c;
    ~Leave() {
      c.mode_ = Mode::off;
      c.tensors_.clear();
      c.storages_.clear();
    }
  } leave{*this};
  serial_ = next_serial();
  undo_.clear();
  list_ = &plans_;
  plan_ = frozen.plan.get();
  storages_.assign(plan_->slots.size(), nullptr);
  if (!hand_out_all(frozen, arguments)) return false;
  calls_++;
  for (size_t i = 0; i < frozen.results.size(); i++)
    if (frozen.results[i] != no_number) results[i] = tensors_[frozen.results[i]];
  finish();
  return true;
}

}  // namespace perigee
