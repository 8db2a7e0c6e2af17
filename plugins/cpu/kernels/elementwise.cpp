// SPDX-License-Identifier: Apache-2.0
// All elementwise operators: which loop serves an expression.
#include "elementwise.hpp"

namespace cpu::elementwise {
namespace {

using pg::ScalarOperand;

// A tensor of the call's dtype (or, where `truth`, of bool), or a number.
bool plain(const pg::KernelCall& call, const ScalarOperand& operand, bool truth) {
  if (operand.uniform()) return true;
  return operand.kind == ScalarOperand::kInput && (!call.has(operand.index) || operand.truth == truth);
}
bool is_number(const pg::KernelCall& call, const ScalarOperand& operand) {
  return operand.uniform() || !call.has(operand.index);
}

// The form of a single primitive whose operands are the call's own; NULL: there is none for this arrangement.
const ElementwiseForm* single_form(const pg::KernelCall& call, const ScalarCall& scalar) {
  if (scalar.program.count != 1) return nullptr;
  const ScalarStep& step = scalar.program.step[0];
  const pg::math::PrimitiveInfo& info = pg::math::info(step.primitive);
  const uint32_t result = step.truth ? PG_B8 : scalar.dtype;
  if (pg::dtype_of(call.out(0)) != result) return nullptr;
  const bool choice = info.form == pg::math::kChoice;
  int numbers = 0;  // by bit
  for (int i = 0; i < step.operands; i++) {
    const bool truth = choice && i == 0 ? true : step.of_truth;
    if (!plain(call, step.operand[i], truth)) return nullptr;
    if (is_number(call, step.operand[i])) numbers |= 1 << i;
  }
  switch (info.form) {
    case pg::math::kUnary: return numbers == 0 ? &kUnaryForm : nullptr;
    case pg::math::kBinary: return numbers != 3 ? &kBinaryForm : nullptr;
    case pg::math::kSlope: return numbers == 0 ? &kSlopeForm : nullptr;
    case pg::math::kTernary: return numbers == 0 || numbers == 4 ? &kTernaryForm : nullptr;
    case pg::math::kChoice: return numbers == 0 || numbers == 2 || numbers == 4 ? &kChoiceForm : nullptr;
  }
  return nullptr;
}

const ElementwiseForm& form_of(const pg::KernelCall& call, const ScalarCall& scalar) {
  const ElementwiseForm* single = single_form(call, scalar);
  return single != nullptr ? *single : kProgramForm;
}

void supports(const pg::KernelCall& call) {
  require_all_dense(call), refuse_turned(call);
  const ScalarCall scalar(call);
  form_of(call, scalar).supports(call, scalar);
}

pg::Kernel* prepare(const pg::KernelCall& call, pg::Plan&) {
  const ScalarCall scalar(call);
  return form_of(call, scalar).prepare(call, scalar);
}

[[maybe_unused]] const int registered = pg::add_kernel(
    {{PG_SIZE(pg_kernel_info, spares), PG_KERNEL_SCALAR | PG_KERNEL_ANY_ORDER, "*", 0, 0}, supports, prepare});

}  // namespace
}  // namespace cpu::elementwise
