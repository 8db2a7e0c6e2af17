// SPDX-License-Identifier: Apache-2.0
#include "in_place.hpp"

#include "ambient.hpp"
#include "builder.hpp"

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
