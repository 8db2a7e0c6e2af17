// SPDX-License-Identifier: Apache-2.0
#include "call/in_place.hpp"

#include "base/ambient.hpp"
#include "builder/builder.hpp"

namespace perigee {
namespace {

bool is_entangled(const Tensor& target, const Tensor* x) {
  if (x == nullptr || !x->storage || x->storage.get() != target.storage.get() || is_same_view(&target, x)) return false;
  return x->offset < target.offset + target.meta->span && target.offset < x->offset + x->meta->span;
}

}  // namespace

bool call_separated(Signature& s, Tensor* const* inputs, const void* attrs, TensorRef* outputs, uint32_t output_count) {
  SmallVector<Tensor*, 4> apart(inputs, inputs + s.inputs.size());
  SmallVector<TensorRef, 2> copies;
  for (size_t i = 1; i < apart.size(); i++) {
    if (!is_entangled(*inputs[0], inputs[i])) continue;
    copies.push_back(emit_clone(*inputs[i]));
    apart[i] = copies.back().get();
  }
  if (copies.empty()) return false;
  Scoped<const Autocast*> as_given(ambient().autocast, nullptr);  // the call has been cast for
  call(*s.op, apart.data(), static_cast<uint32_t>(apart.size()), s.groups.data(), attrs, emit_in_place, outputs,
       output_count);
  return true;
}

void call_apart(Signature& s, Tensor* const* inputs, const void* attrs, TensorRef* outputs, uint32_t output_count) {
  Scoped<const Autocast*> as_given(ambient().autocast, nullptr);  // the call has been cast for
  Scoped<bool> said(ambient().log_placement, false);
  Tensor& target = *inputs[0];
  SmallVector<Tensor*, 4> apart(inputs, inputs + s.inputs.size());
  bool recorded = false;
  for (Tensor* x : apart) recorded |= ambient().grad_enabled && x != nullptr && needs_gradient(*x);
  SmallVector<TensorRef, 2> before;  // what the tape saves must not be what is written to
  for (Tensor*& x : apart) {
    if (!recorded || x == nullptr || !x->storage || x->storage.get() != target.storage.get()) continue;
    before.push_back(emit_clone(*x));
    x = before.back().get();
  }
  std::vector<TensorRef> made(std::max(output_count, 1u));
  Scoped<int32_t> here(ambient().device, s.device->id);
  call(*s.op, apart.data(), static_cast<uint32_t>(apart.size()), s.groups.data(), attrs, 0, made.data(),
       static_cast<uint32_t>(made.size()));
  if (made[0]->storage && made[0]->storage.get() == target.storage.get()) made[0] = emit_clone(*made[0]);
  call1(role_op(Role::copy), {&target, made[0].get()});
  made[0] = TensorRef::share(&target);
  for (uint32_t i = 0; i < output_count; i++) outputs[i] = std::move(made[i]);
}

TensorRef target_before(const TapeCall& call) {
  Tensor& target = *call.inputs[0];
  bool saved = (call.op->info->saved_inputs & 1u) != 0;
  uint32_t flat = 0;
  for (uint32_t i = 0; i < call.op->info->input_count && !saved; i++)
    for (uint32_t k = 0; k < call.groups[i]; k++, flat++)
      saved = saved || (((call.op->info->saved_inputs >> i) & 1u) && is_same_view(&target, call.inputs[flat]));
  if (!saved || !target.storage || !wants_tape(call)) return {};
  TensorRef before = copy_dense(target, target.meta->dtype);
  Edge history = edge_of(target);
  before->node = history.node;
  before->output = history.output;
  return before;
}

}  // namespace perigee
