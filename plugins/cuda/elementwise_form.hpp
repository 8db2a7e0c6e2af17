// SPDX-License-Identifier: Apache-2.0
// Kernels of scalar expressions (perigee/scalar.hpp) by what their one primitive is; kernels/elementwise.cpp chooses.
#pragma once

#include "elementwise_plan.hpp"
#include "kernel.hpp"
#include "perigee/scalar.hpp"

namespace cuda::elementwise {

using pg::ScalarCall;
using pg::ScalarStep;
using pg::math::Primitive;

struct Form {
  void (*supports)(const pg::KernelCall& call, const ScalarCall& scalar);
  pg::Kernel* (*prepare)(const pg::KernelCall& call, const ScalarCall& scalar);
};
// Of one operand: cheap ones and predicates, elementary functions, special ones; then by form.
extern const Form kUnaryForm, kElementaryForm, kSpecialForm, kArithmeticForm, kComparisonForm, kSlopeForm, kTernaryForm,
    kChoiceForm;

template <class Type>
constexpr Form form_of() {
  return {Type::supports,
          [](const pg::KernelCall& call, const ScalarCall& scalar) -> pg::Kernel* { return new Type(call, scalar); }};
}

[[noreturn]] inline void refuse(const pg::KernelCall& call) {
  pg::fail_support(pg::format("%s on cuda does not take (%s)", call.op(), pg::describe(call).c_str()));
}

// What a primitive must be for to be computed in T.
template <class T>
constexpr int types_of = std::is_floating_point_v<T> ? pg::math::kOfFloats : pg::math::kWhole;

// Refuses dtypes that the primitive is not for.
inline void check_primitive(const pg::KernelCall& call, const ScalarCall& scalar) {
  const ScalarStep& step = scalar.program.step[0];
  const uint32_t kind = step.of_truth ? PG_M_BOOL : pg::dtype_class(scalar.dtype);
  const uint8_t type = kind == PG_M_FLOAT  ? pg::math::kOfFloats
                       : kind == PG_M_BOOL ? pg::math::kOfBooleans
                                           : pg::math::kOfIntegers;
  check_dtypes(call, PG_M_FLOAT | PG_M_INT | PG_M_BOOL);
  if ((pg::math::info(step.primitive).types & type) == 0) refuse(call);
}

// A tensor of the call, or a number that is the same for all elements.
class LoopInput {
 public:
  LoopInput() = default;
  LoopInput(const pg::KernelCall& call, const pg::ScalarOperand& operand) {
    if (operand.kind == pg::ScalarOperand::kInput && call.has(operand.index))
      index_ = operand.index;
    else
      number_ = pg::ScalarNumber(call, operand);
  }
  bool is_number() const { return index_ < 0; }
  const pg_tensor& tensor(const pg::KernelCall& call) const { return call.in(static_cast<uint32_t>(index_)); }
  pg_number number(const Launch& launch) const { return number_(launch.raw); }
  void* address(const Launch& launch) const {
    return is_number() ? nullptr : const_cast<void*>(launch.in(static_cast<uint32_t>(index_)));
  }

 private:
  int index_ = -1;
  pg::ScalarNumber number_;
};

// What the loop computes on: in the call's dtype, or on bits alone.
inline LoopOperand typed(const pg::KernelCall& call, const LoopInput& input) {
  return input.is_number() ? number() : typed(input.tensor(call));
}
inline LoopOperand raw(const pg::KernelCall& call, const LoopInput& input) {
  return input.is_number() ? number() : raw(input.tensor(call));
}

}  // namespace cuda::elementwise
