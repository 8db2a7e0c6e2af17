// SPDX-License-Identifier: Apache-2.0
#include "builder/builder.hpp"

#include <cstring>
#include <optional>

#include "builder/rule_check.hpp"
#include "tensor/order.hpp"

namespace perigee {
namespace {

// A dimension service cannot fail by itself: the callback in progress fails when it returns.
thread_local std::optional<pg::Error> dim_error;

}  // namespace

void defer_dim_error(const pg::Error& error) { dim_error = error; }
void clear_dim_error() { dim_error.reset(); }
void raise_pending_dim_error() {
  if (!dim_error) return;
  pg::Error error = *dim_error;
  dim_error.reset();
  throw error;
}

uint32_t PendingCall::input_flags(uint32_t flat) const {
  for (uint32_t i = 0; i < op.info->input_count; i++) {
    if (flat < groups[i]) {
      uint32_t mask = op.mutates(i, attrs.data()) ? ~0u : ~PG_INPUT_MUTATES;
      return op.info->inputs[i]->flags & mask;
    }
    flat -= groups[i];
  }
  return 0;
}

void call_named(const Op& op, Tensor* const* inputs, uint32_t input_count, const uint32_t* groups, const void* attrs,
                uint32_t flags, TensorRef* outputs, uint32_t output_count) {
  try {
    call(op, inputs, input_count, groups, attrs, flags, outputs, output_count);
  } catch (const pg::Error& e) {
    throw pg::Error(e.code, op.info->name + std::string(": ") + e.what(), e.native, e.flags);
  }
}

TensorRef call1(const Op& op, std::initializer_list<Tensor*> inputs, const void* attrs, uint32_t flags) {
  TensorRef output;
  call_named(op, inputs.begin(), static_cast<uint32_t>(inputs.size()), nullptr, attrs, flags, &output, 1);
  return output;
}

TensorRef emit_cast(Tensor& x, uint32_t dtype) {
  const Op& op = role_op(Role::cast);
  std::vector<uint8_t> attrs(static_cast<const uint8_t*>(op.info->defaults),
                             static_cast<const uint8_t*>(op.info->defaults) + op.info->attr_size);
  std::memcpy(attrs.data() + op.dtype_offset, &dtype, sizeof dtype);
  Scoped<int32_t> here(ambient().device, -1);
  return call1(op, {&x}, attrs.data());
}

TensorRef emit_clone(Tensor& x) { return call1(role_op(Role::clone), {&x}); }

TensorRef emit_row_major(Tensor& x) {
  const Op& op = role_op(Role::clone);
  if (op.format_offset == UINT32_MAX) return call1(op, {&x});
  auto* defaults = static_cast<const uint8_t*>(op.info->defaults);
  std::vector<uint8_t> attrs(defaults, defaults + op.info->attr_size);
  const auto format = static_cast<int32_t>(MemoryFormat::contiguous);
  std::memcpy(attrs.data() + op.format_offset, &format, sizeof format);
  return call1(op, {&x}, attrs.data());
}

TensorRef emit_transfer(Tensor& x, Device& device) {
  const Op& op = role_op(Role::transfer);
  std::vector<uint8_t> attrs(static_cast<const uint8_t*>(op.info->defaults),
                             static_cast<const uint8_t*>(op.info->defaults) + op.info->attr_size);
  std::memcpy(attrs.data() + op.device_offset, &device.id, sizeof device.id);
  return call1(op, {&x}, attrs.data());
}

uint32_t output_total(const Op& op, const uint32_t* groups, uint32_t* visible) {
  uint32_t total = 0;
  if (visible != nullptr) *visible = 0;
  for (uint32_t i = 0; i < op.info->output_count; i++) {
    const pg_output_info& out = *op.info->outputs[i];
    uint32_t count = out.flags & PG_OUTPUT_VARIADIC ? groups[out.like] : 1;
    total += count;
    if (visible != nullptr && !(out.flags & PG_OUTPUT_HIDDEN)) *visible += count;
  }
  return total;
}

void infer(const Op& op, const pg_tensor* const* inputs, uint32_t input_count, const uint32_t* groups,
           const void* attrs, bool symbolic, pg_meta* metas, uint32_t output_count) {
  SmallVector<pg_meta*, 4> pointers;
  for (uint32_t i = 0; i < output_count; i++) {
    metas[i] = pg_meta{};
    metas[i].size = PG_SIZE(pg_meta, offset);
    pointers.push_back(&metas[i]);
  }
  pg_infer ask{};
  ask.size = PG_SIZE(pg_infer, outputs);
  ask.symbolic = symbolic ? 1 : 0;
  ask.user = op.info->user;
  ask.input_count = input_count;
  ask.output_count = output_count;
  ask.inputs = inputs;
  ask.groups = groups;
  ask.attrs = attrs;
  ask.outputs = pointers.data();
  pg_error error = pg::make_error();
  clear_dim_error();
  int32_t code = op.info->infer(&ask, &error);
  raise_pending_dim_error();  // says more than what the schema made of the -1 it saw
  pg::check(code, error);
  check_described(op, groups, metas, output_count);
}

}  // namespace perigee
