// SPDX-License-Identifier: Apache-2.0
// Layers of plugins in plans: where a call of one is what it was, its items follow without asking the plugin for them.
#include <algorithm>

#include "compile/compiled.hpp"

namespace perigee {
namespace {

Tensor* argument(const LayerCall& call, const LayerPlan& layer, size_t i) {
  return i < layer.params ? call.params[i] : call.inputs[i - layer.params];
}

// The number of a tensor that belongs to the stretch, of one that is absent no_number. Answers whether it is either.
bool number_in(uint64_t serial, const Tensor* x, uint32_t& number) {
  number = x == nullptr ? no_number : static_cast<uint32_t>(x->mark & 0xffffff);
  return x == nullptr || x->mark >> 24 == serial;
}

}  // namespace

LayerStart Compiled::begin_layer() const {
  if (open_) return {};
  if (mode_ == Mode::recording) return {stretches_, recording_->items.size(), recording_->tensors.size(), apart_};
  if (mode_ == Mode::matching) return {stretches_, at_, tensors_.size(), apart_};
  return {};
}

// What the items read must be the layer's own, and what it brings from outside must come before what they make: then
// the next call is known by its tensors.
void Compiled::end_layer(const LayerStart& start, const LayerCall& call, Tensor* const* outputs) {
  if (start.stretch != stretches_ || start.apart != apart_ || open_ ||
      (mode_ != Mode::recording && mode_ != Mode::matching))
    return;
  Plan& plan = mode_ == Mode::recording ? *recording_ : *plan_;
  const size_t end = mode_ == Mode::recording ? plan.items.size() : at_;
  if (end <= start.item || plan.items[start.item].layer != no_number) return;
  LayerPlan layer;
  layer.id = call.id;
  layer.params = call.param_count;
  layer.training = call.training;
  layer.items = static_cast<uint32_t>(end - start.item);
  layer.attrs.assign(call.attrs, call.attrs + call.attr_size);
  layer.arguments.resize(call.param_count + call.input_count);
  layer.outputs.resize(call.output_count);
  for (size_t i = 0; i < layer.arguments.size(); i++)
    if (!number_in(serial_, argument(call, layer, i), layer.arguments[i])) return;
  for (size_t i = 0; i < layer.outputs.size(); i++)
    if (!number_in(serial_, outputs[i], layer.outputs[i])) return;
  auto known = [&](uint32_t n) { return std::find(layer.arguments.begin(), layer.arguments.end(), n); };
  for (size_t i = start.item; i < end; i++) {
    const Item& item = plan.items[i];
    if (item.kind != ItemKind::op || !(item.around == plan.items[start.item].around)) return;
    for (uint32_t n : item.inputs) {
      if (n == no_number || (n >= start.tensors && !plan.tensors[n].outside)) continue;
      const auto at = known(n);
      if (at == layer.arguments.end() || (n >= start.tensors && i > start.item)) return;
      const auto index = static_cast<uint32_t>(at - layer.arguments.begin());
      if (n == start.tensors + layer.met.size()) layer.met.push_back(index);
    }
  }
  plan.items[start.item].layer = static_cast<uint32_t>(plan.layers.size());
  plan.layers.push_back(std::move(layer));
}

bool Compiled::match_layer(const LayerPlan& layer, const LayerCall& call) {
  const Surroundings& around = plan_->items[at_].around;
  if (layer.id != call.id || layer.training != call.training ||
      !std::equal(layer.attrs.begin(), layer.attrs.end(), call.attrs) || why_watched() != nullptr ||
      !(around == surroundings()) || !same_scope(*plan_, around))
    return false;
  for (uint32_t i : layer.met)
    if (!match_input(*plan_, static_cast<uint32_t>(tensors_.size()), argument(call, layer, i), nullptr)) return false;
  for (size_t i = 0; i < layer.arguments.size(); i++) {
    uint32_t number;
    if (!number_in(serial_, argument(call, layer, i), number) || number != layer.arguments[i]) return false;
  }
  return true;
}

bool Compiled::layer(const LayerCall& call, Tensor** outputs) {
  if (mode_ != Mode::matching || open_ || at_ >= plan_->items.size()) return false;
  const uint32_t index = plan_->items[at_].layer;
  if (index == no_number) return false;
  const LayerPlan& layer = plan_->layers[index];
  const auto before = static_cast<uint32_t>(tensors_.size());
  if (!match_layer(layer, call)) {
    forget_from(before);
    return false;
  }
  for (uint32_t i = 0; i < layer.items; i++) {
    const Item& item = plan_->items[at_];
    SmallVector<Tensor*, 8> inputs(item.inputs.size());
    for (size_t k = 0; k < inputs.size(); k++)
      inputs[k] = item.inputs[k] == no_number ? nullptr : tensors_[item.inputs[k]].get();
    accept({ItemKind::op, item.op, item.flags, inputs.data(), static_cast<uint32_t>(inputs.size()), nullptr,
            item.attrs.data(), static_cast<uint32_t>(item.outputs.size())});
  }
  for (size_t i = 0; i < layer.outputs.size(); i++)
    outputs[i] = layer.outputs[i] == no_number ? nullptr : TensorRef(tensors_[layer.outputs[i]]).release();
  return true;
}

}  // namespace perigee
