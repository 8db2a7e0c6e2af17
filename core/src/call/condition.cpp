// SPDX-License-Identifier: Apache-2.0
#include "call/condition.hpp"

#include "graph/graph.hpp"
#include "perigee/plugin.h"

namespace perigee {
namespace {

bool writes(const Op& op, const void* attrs, uint32_t flags) {
  bool any = (flags & emit_in_place) != 0 || op.role == Role::copy;
  for (uint32_t i = 0; i < op.info->input_count; i++) any |= op.mutates(i, attrs);
  return any;
}

bool takes_condition(const Op& op) {
  uint32_t count = op.info->input_count;
  return count > 0 && (op.info->inputs[count - 1]->flags & PG_INPUT_CONDITION) != 0;
}

}  // namespace

Condition::Condition(TensorRef flag) : skip(std::move(flag)) {
  if (skip->meta->dtype != PG_B8 || skip->meta->rank != 0)
    pg::fail_argument(pg::format("the condition is %s %s; expected one bool", pg::dtype_name(skip->meta->dtype),
                                 shape_text(*skip->meta).c_str()));
}

bool Condition::read() {
  if (known < 0) {
    uint8_t value = 0;
    to_host(*skip, &value);
    known = value != 0;
  }
  return known != 0;
}

Tensor& Condition::on(Device& device) {
  if (skip->device == &device || skip->is_graph()) return *skip;  // a graph's is brought there as any input
  for (TensorRef& copy : elsewhere)
    if (copy->device == &device) return *copy;
  elsewhere.push_back(move_to(*skip, device));
  return *elsewhere.back();
}

bool apply_condition(const Op& op, SmallVector<Tensor*, 8>& inputs, const void* attrs, uint32_t flags,
                     TensorRef* outputs, uint32_t output_count) {
  Condition& condition = *ambient().condition;
  if (!writes(op, attrs, flags)) return false;
  Tensor* target = nullptr;
  for (Tensor* x : inputs)
    if (target == nullptr) target = x;
  if (target != nullptr && target->is_graph() && !takes_condition(op))
    pg::fail(PG_E_NOT_SUPPORTED, "cannot be skipped, and a step that may have to be is recorded into the graph");
  if (takes_condition(op) && target != nullptr && !inputs.empty() && inputs.back() == nullptr) {
    inputs.back() = &condition.on(*target->device);
    return false;
  }
  if (!condition.read()) return false;
  for (uint32_t i = 0; i < output_count; i++) {
    if (i > 0 || target == nullptr || !((flags & emit_in_place) || op.role == Role::copy))
      pg::fail(PG_E_NOT_SUPPORTED,
               pg::format("%s writes, and what it returns is unknown when it is skipped", op.info->name));
    outputs[i] = TensorRef::share(target);
  }
  return true;
}

}  // namespace perigee
