// SPDX-License-Identifier: Apache-2.0
// Kernels of scalar expressions (perigee/scalar.hpp), by form: a single primitive over tensors has a loop of its own,
// all else is computed tile by tile. elementwise.cpp chooses.
#pragma once

#include "../block_loop.hpp"
#include "../parameter_block.hpp"
#include "perigee/scalar.hpp"

namespace cpu {

using pg::ScalarCall;
using pg::ScalarStep;

struct ElementwiseForm {
  void (*supports)(const pg::KernelCall& call, const ScalarCall& scalar);  // of tensors that are dense
  pg::Kernel* (*prepare)(const pg::KernelCall& call, const ScalarCall& scalar);
};
extern const ElementwiseForm kUnaryForm, kBinaryForm, kSlopeForm, kTernaryForm, kChoiceForm, kProgramForm;

template <class Type>
constexpr ElementwiseForm elementwise_form() {
  return {Type::supports,
          [](const pg::KernelCall& call, const ScalarCall& scalar) -> pg::Kernel* { return new Type(call, scalar); }};
}

// One operand of a loop: a tensor of the call, or a number that is the same for all elements.
class LoopInput {
 public:
  LoopInput() = default;
  LoopInput(const pg::KernelCall& call, const pg::ScalarOperand& operand) {
    if (operand.kind == pg::ScalarOperand::kInput && call.has(operand.index)) {
      index_ = operand.index;
      tensor_ = &call.in(operand.index);
    } else {
      number_ = pg::ScalarNumber(call, operand);
    }
  }
  const pg_tensor* tensor() const { return tensor_; }  // while the call lasts; NULL: a number
  bool is_number() const { return index_ < 0; }
  pg_number number(const pg_launch& launch) const { return number_(launch); }
  // Where it lies; `room` takes a number in the type of the loop.
  void* address(const pg_launch& launch, Storage type, void* room) const {
    if (index_ >= 0) return const_cast<void*>(pg::input(launch, static_cast<uint32_t>(index_)));
    put_number(type, number_(launch), room);
    return room;
  }

 private:
  int index_ = -1;
  const pg_tensor* tensor_ = nullptr;
  pg::ScalarNumber number_;
};

}  // namespace cpu
