// SPDX-License-Identifier: Apache-2.0
// All elementwise operators: which kernel serves a scalar expression.
#include "../elementwise_form.hpp"
#include "../fused/one_call.hpp"

namespace cuda::elementwise {
namespace {

using pg::ScalarOperand;

// A mask of the operands that are numbers.
int numbers_of(const pg::KernelCall& call, const ScalarStep& step) {
  int numbers = 0;
  for (int i = 0; i < step.operands; i++)
    if (step.operand[i].uniform() || !call.has(step.operand[i].index)) numbers |= 1 << i;
  return numbers;
}

// Whether the step reads the call's own operands, of its dtype, and gives its result.
bool is_plain(const pg::KernelCall& call, const ScalarCall& scalar) {
  if (scalar.program.count != 1) return false;
  const ScalarStep& step = scalar.program.step[0];
  const bool choice = pg::math::info(step.primitive).form == pg::math::kChoice;
  for (int i = 0; i < step.operands; i++) {
    const ScalarOperand& operand = step.operand[i];
    if (operand.uniform() || !call.has(operand.index)) continue;
    if (operand.truth != (step.of_truth || (choice && i == 0))) return false;
  }
  return pg::dtype_of(call.out(0)) == (step.truth ? PG_B8 : scalar.dtype);
}

const Form* find_form(const pg::KernelCall& call, const ScalarCall& scalar) {
  if (!is_plain(call, scalar)) return nullptr;
  const ScalarStep& step = scalar.program.step[0];
  const pg::math::PrimitiveInfo& info = pg::math::info(step.primitive);
  const int numbers = numbers_of(call, step);
  switch (info.form) {
    case pg::math::kUnary: {
      if (numbers != 0) return nullptr;
      return info.cost == pg::math::kCheap    ? &kUnaryForm
             : info.cost == pg::math::kCostly ? &kElementaryForm
                                              : &kSpecialForm;
    }
    case pg::math::kBinary: {
      if (numbers == 3) return nullptr;
      return info.result == pg::math::kTruth ? &kComparisonForm : &kArithmeticForm;
    }
    case pg::math::kSlope: return numbers == 0 ? &kSlopeForm : nullptr;
    case pg::math::kTernary: return numbers == 0 || numbers == 4 ? &kTernaryForm : nullptr;
    case pg::math::kChoice: return numbers == 0 || numbers == 2 || numbers == 4 ? &kChoiceForm : nullptr;
  }
  return nullptr;
}

// Others have a kernel generated: of several primitives, or of truth values beside numbers.
void supports(const pg::KernelCall& call) {
  check_dtypes(call, kAny);
  const ScalarCall scalar(call);
  const Form* form = find_form(call, scalar);
  form != nullptr ? form->supports(call, scalar) : fused::check_one_call(call);
}

pg::Kernel* prepare(const pg::KernelCall& call, pg::Plan&) {
  const ScalarCall scalar(call);
  const Form* form = find_form(call, scalar);
  return form != nullptr ? form->prepare(call, scalar) : fused::prepare_one_call(call);
}

[[maybe_unused]] const int registered =
    pg::add_kernel({{PG_SIZE(pg_kernel_info, spares), PG_KERNEL_SCALAR, "*", 0, 0}, supports, prepare});

}  // namespace
}  // namespace cuda::elementwise
