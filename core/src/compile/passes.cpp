// SPDX-License-Identifier: Apache-2.0
// Backward passes of a compiled function, and the nodes whose gradients the front end computes: a pass that stops at
// one goes on as part of what is recorded (core/docs/decisions/0037-gradients-of-lua-in-plans.md).
#include <algorithm>

#include "compile/compiled.hpp"
#include "tape/custom.hpp"

namespace perigee {
namespace {

// What an item of kind backward has as inputs and as flags.
std::vector<Tensor*> roots_and_seeds(const BackwardCall& call) {
  std::vector<Tensor*> inputs(call.roots, call.roots + call.root_count);
  if (call.seeds != nullptr) inputs.insert(inputs.end(), call.seeds, call.seeds + call.root_count);
  return inputs;
}

uint32_t flags_of(const BackwardCall& call) {
  return (call.retain_graph ? 1u : 0u) | (call.seeds != nullptr ? 2u : 0u);
}

}  // namespace

bool Compiled::backward(const BackwardCall& call, PassRef& paused) {
  if (open_) {
    give_up_pass("a gradient that Lua computes is computed by a backward pass of its own");
    return false;
  }
  if (call.inputs != nullptr || call.create_graph) {
    settle();
    if (mode_ != Mode::eager) note("pg.grad, or create_graph, ends a stretch");
    Scoped<ItemLog*> alone(ambient().items, nullptr);
    paused = perigee::backward(call);
    return true;
  }
  std::vector<Tensor*> inputs = roots_and_seeds(call);
  const uint32_t flags = flags_of(call);
  if (mode_ == Mode::matching && is_again(inputs, flags) && finish_pass()) return true;
  if (mode_ == Mode::matching &&
      match({ItemKind::backward, nullptr, flags, inputs.data(), static_cast<uint32_t>(inputs.size()), nullptr, nullptr,
             0}) &&
      (!plan_->items[at_ - 1].pauses || finish_pass()))
    return true;
  if (mode_ != Mode::recording) return false;
  record_backward(call, paused);
  return true;
}

// Whether this very pass was matched, and memory ran out as it was launched.
bool Compiled::is_again(const std::vector<Tensor*>& inputs, uint32_t flags) const {
  if (at_ == 0) return false;
  const Item& last = plan_->items[at_ - 1];
  if (!last.pauses || last.flags != flags) return false;
  const std::vector<uint32_t> numbers = numbers_of(inputs.data(), static_cast<uint32_t>(inputs.size()));
  return numbers.size() == last.roots * ((flags & 2u) != 0 ? 2 : 1) &&
         std::equal(numbers.begin(), numbers.end(), last.inputs.begin());
}

// A pass that stops could not be called again: so it is launched at once, or left out of what is called again.
bool Compiled::finish_pass() {
  if (!find_outliving(*plan_)) return replay_outliving();
  settle();
  return true;
}

bool Compiled::custom(Tensor* const* inputs, uint32_t input_count, TensorRef* outputs, uint32_t output_count,
                      uint64_t& number) {
  if (open_) {
    give_up_pass("a gradient that Lua computes makes a node of its own");
    return false;
  }
  std::vector<Tensor*> all(inputs, inputs + input_count);
  for (uint32_t i = 0; i < output_count; i++) all.push_back(outputs[i].get());
  if (mode_ == Mode::matching && match({ItemKind::custom, nullptr, input_count, all.data(),
                                        static_cast<uint32_t>(all.size()), nullptr, nullptr, output_count})) {
    const Item& item = plan_->items[at_ - 1];
    for (uint32_t i = 0; i < output_count; i++) outputs[i] = tensors_[item.outputs[i]];
    number = next_node_sequence();
    customs_.push_back(number);
    return true;
  }
  if (mode_ != Mode::recording) return false;
  number = 0;
  record_custom_node(all, input_count, outputs, number);
  return true;
}

// ---- what is recorded ----

void Compiled::record_backward(const BackwardCall& call, PassRef& paused) {
  std::vector<Tensor*> inputs = roots_and_seeds(call);
  const uint32_t flags = flags_of(call);
  Item item = add_item(
      {ItemKind::backward, nullptr, flags, inputs.data(), static_cast<uint32_t>(inputs.size()), nullptr, nullptr, 0});
  recording_->items.pop_back();
  item.roots = call.root_count;
  auto open = std::make_unique<OpenPass>();
  open->leaves = leaves_;
  for (const TensorRef& leaf : open->leaves) {
    TensorRef* gradient = gradient_of(*leaf);
    open->before.push_back(gradient != nullptr ? *gradient : nullptr);
    item.inputs.push_back(open->before.back() ? number_of(*open->before.back()) : no_number);
  }
  refuse_derived(item.inputs);
  open->item = std::move(item);
  open_ = std::move(open);
  paused = listen_to_pass([&] { return perigee::backward(call); });
  end_pass(paused);
}

template <class Run>
PassRef Compiled::listen_to_pass(Run&& run) {
  Scoped<ItemLog*> alone(ambient().items, nullptr);
  Scoped<LaunchLog*> listen(ambient().launches, this);
  try {
    return run();
  } catch (const pg::Error&) {
    refuse("backward raised an error");
    open_ = nullptr;
    throw;
  }
}

// The pass is over, or has stopped.
void Compiled::end_pass(const PassRef& paused) {
  if (paused && stopped_at_pure(*paused)) {
    open_->item.pauses = true;
    return;
  }
  if (paused) return give_up_pass("backward goes through a gradient or a hook of Lua's");
  const std::unique_ptr<OpenPass> open = std::move(open_);
  Item& item = open->item;
  for (size_t i = 0; i < open->leaves.size(); i++) {
    TensorRef* gradient = gradient_of(*open->leaves[i]);
    if (gradient == nullptr || !*gradient || gradient->get() == open->before[i].get()) continue;
    item.grads.push_back({static_cast<uint32_t>(open->leaves[i]->mark & 0xffffff), add_made(**gradient, false)});
  }
  const bool last = item.pauses;
  recording_->items.push_back(std::move(item));
  if (!last) return;
  end_recording();
  begin_stretch();
}

PassRef Compiled::go_on(PassRef pass, Tensor* const* gradients, Tensor** results) {
  PassRef paused = listen_to_pass([&] { return perigee::go_on(std::move(pass), gradients, results); });
  end_pass(paused);
  return paused;
}

void Compiled::abandon_pass() {
  if (open_) give_up_pass("backward raised an error");
}

// Nobody listens to the rest of the call.
void Compiled::give_up_pass(const std::string& why) {
  open_ = nullptr;
  refuse(why);
  end_recording();
  begin_eager();
}

void Compiled::record_custom_node(const std::vector<Tensor*>& all, uint32_t input_count, TensorRef* outputs,
                                  uint64_t& number) {
  const auto output_count = static_cast<uint32_t>(all.size()) - input_count;
  Item item = add_item({ItemKind::custom, nullptr, input_count, all.data(), static_cast<uint32_t>(all.size()), nullptr,
                        nullptr, output_count});
  recording_->items.pop_back();
  number = record_custom(all.data(), input_count, outputs, output_count, {false, true, number});
  for (uint32_t i = 0; i < output_count; i++) item.outputs.push_back(add_made(*outputs[i], false));
  refuse_derived(item.inputs);
  recording_->items.push_back(std::move(item));
}

}  // namespace perigee
