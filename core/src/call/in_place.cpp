// SPDX-License-Identifier: Apache-2.0
#include "call/in_place.hpp"

#include <algorithm>
#include <functional>

#include "base/ambient.hpp"
#include "builder/builder.hpp"

namespace perigee {
namespace {

bool overlap(const Tensor& a, const Tensor& b) {
  return a.offset < b.offset + b.meta->span && b.offset < a.offset + a.meta->span;
}

// By flat position: whether the call writes there.
SmallVector<uint8_t, 8> written_inputs(const Signature& s) {
  SmallVector<uint8_t, 8> written(s.inputs.size());
  uint32_t flat = 0;
  for (uint32_t i = 0; s.writes && i < s.op->info->input_count; i++)
    for (uint32_t k = 0; k < s.groups[i]; k++, flat++) written[flat] = s.mutates[i];
  if (s.in_place) written[0] = 1;
  return written;
}

struct StoredInput {
  const Storage* storage;
  uint32_t input;
};

}  // namespace

bool call_separated(Signature& s, Tensor* const* inputs, const void* attrs, TensorRef* outputs, uint32_t output_count) {
  SmallVector<StoredInput, 8> places;
  for (uint32_t i = 0; i < s.inputs.size(); i++)
    if (inputs[i] != nullptr && inputs[i]->storage) places.push_back({inputs[i]->storage.get(), i});
  if (places.size() < 2) return false;
  std::sort(places.begin(), places.end(), [](const StoredInput& a, const StoredInput& b) {
    return a.storage != b.storage ? std::less<>()(a.storage, b.storage) : a.input < b.input;
  });
  SmallVector<uint8_t, 8> written;
  SmallVector<uint32_t, 4> copied;
  for (size_t first = 0, end; first < places.size(); first = end) {
    for (end = first + 1; end < places.size() && places[end].storage == places[first].storage;) end++;
    if (end == first + 1) continue;
    if (written.size() == 0) written = written_inputs(s);
    for (size_t i = first; i < end; i++)
      for (size_t k = first; k < end; k++) {
        const uint32_t to = places[i].input, from = places[k].input;
        if (to == from || written[to] == 0 || !overlap(*inputs[to], *inputs[from])) continue;
        // In place, an input that lies exactly where the result goes is what kernels reckon with.
        if (s.in_place && to == 0 && is_same_view(inputs[to], inputs[from])) continue;
        if (written[from] != 0) pg::fail_argument("two of its inputs that are written to share memory");
        if (std::find(copied.begin(), copied.end(), from) == copied.end()) copied.push_back(from);
      }
  }
  if (copied.size() == 0) return false;
  SmallVector<Tensor*, 4> apart(inputs, inputs + s.inputs.size());
  SmallVector<TensorRef, 2> copies;
  for (uint32_t i : copied) {
    copies.push_back(emit_clone(*inputs[i]));
    apart[i] = copies.back().get();
  }
  Scoped<const Autocast*> as_given(ambient().autocast, nullptr);  // the call has been cast for
  call(*s.op, apart.data(), static_cast<uint32_t>(apart.size()), s.groups.data(), attrs, s.in_place ? emit_in_place : 0,
       outputs, output_count);
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
