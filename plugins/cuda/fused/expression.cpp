// SPDX-License-Identifier: Apache-2.0
#include "expression.hpp"

#include "perigee/kernels/strided.hpp"

namespace cuda::fused {
namespace {

using pg::ScalarOperand;

[[noreturn]] void refuse_node(const pg::KernelCall& call) {
  pg::fail_support(pg::format("%s (%s) is no part of a generated kernel", call.op(), pg::describe(call).c_str()));
}

bool has_role(const pg_op_info& op, const char* role) { return op.role != nullptr && std::strcmp(op.role, role) == 0; }

void check_tensor(const pg::KernelCall& call, const pg_tensor& t) {
  if (t.layout != 0 || t.class_id != PG_CLASS_DENSE || storage_name(pg::dtype_of(t)) == nullptr) refuse_node(call);
}

// Copies between large tensors of different orders go through shared memory (transpose.cuh), which is quicker.
void refuse_turned(const pg::KernelCall& call) {
  constexpr int64_t kWorthIt = 4096;  // elements
  const pg_tensor &x = call.in(0), &y = call.out(0);
  if (pg::element_count(y) < kWorthIt || x.rank != y.rank) return;
  int order[PG_MAX_RANK];
  if (pg::axes_by_stride(y, order) > 0 && x.stride[order[0]] > 1) refuse_node(call);
}

// One primitive over operands of one dtype, which is what eager kernels take (kernels/elementwise.cpp): what they
// compute otherwise, or may fail at, is left to them.
void check_step(const pg::KernelCall& call, const NodeExpression& node) {
  const pg::ScalarStep& step = node.step;
  const pg::math::PrimitiveInfo& info = pg::math::info(step.primitive);
  const uint32_t kind = pg::dtype_class(node.dtype);
  const bool choice = info.form == pg::math::kChoice;
  const uint8_t type = kind == PG_M_FLOAT  ? pg::math::kOfFloats
                       : kind == PG_M_BOOL ? pg::math::kOfBooleans
                                           : pg::math::kOfIntegers;
  if ((info.types & type) == 0) refuse_node(call);
  if (kind != PG_M_FLOAT && info.checks != pg::math::kNothing) refuse_node(call);
  if (info.cost == pg::math::kSpecial && step.parameters > 1) refuse_node(call);
  int tensors = 0;
  for (int i = 0; i < step.operands; i++) {
    const ScalarOperand& operand = step.operand[i];
    if (operand.kind == ScalarOperand::kStep) refuse_node(call);
    if (is_number(call, operand)) {
      if (choice && i == 0) refuse_node(call);
      continue;
    }
    tensors++;
    const bool condition = choice && i == 0;
    if (pg::dtype_of(call.in(operand.index)) != (condition ? PG_B8 : node.dtype)) refuse_node(call);
  }
  if (tensors == 0) refuse_node(call);
  if (pg::dtype_of(call.out(0)) != (info.result == pg::math::kTruth ? PG_B8 : node.dtype)) refuse_node(call);
}

}  // namespace

const char* storage_name(uint32_t dtype) {
  switch (dtype) {
    case PG_F32: return "float";
    case PG_F16: return "f16";
    case PG_BF16: return "bf16";
    case PG_F64: return "double";
    case PG_I64: return "int64_t";
    case PG_I32: return "int32_t";
    case PG_I16: return "int16_t";
    case PG_I8: return "int8_t";
    case PG_U8: return "uint8_t";
    case PG_B8: return "Bool";
    default: return nullptr;
  }
}

const char* compute_name(uint32_t dtype) {
  if (dtype == PG_F64) return "double";
  if (pg::dtype_class(dtype) == PG_M_FLOAT) return "float";
  return dtype == PG_I64 ? "int64_t" : "int32_t";
}

void read_node(const pg::Region& region, uint32_t number, NodeExpression& out) {
  region.describe(number, out.call);
  const pg::KernelCall call(&out.call.call);
  const pg_op_info& op = *call.raw->op;
  if (call.output_count() != 1 || !call.has_output(0)) refuse_node(call);
  check_tensor(call, call.out(0));
  if (!pg::fills_memory(call.out(0))) refuse_node(call);
  for (uint32_t i = 0; i < call.input_count(); i++)
    if (call.has(i)) check_tensor(call, call.in(i));
  out.moves = has_role(op, "cast") || has_role(op, "clone");
  if (out.moves) {
    if (!call.has(0)) refuse_node(call);
    refuse_turned(call);
    out.dtype = pg::dtype_of(call.in(0));
    return;
  }
  if (op.scalar == nullptr || pg::scalar_expression(op) == nullptr) refuse_node(call);
  const pg::ScalarCall scalar(call);
  if (scalar.program.count != 1 || scalar.program.result.kind != ScalarOperand::kStep) refuse_node(call);
  out.step = scalar.program.step[0];
  out.dtype = out.step.of_truth ? static_cast<uint32_t>(PG_B8) : scalar.dtype;
  check_step(call, out);
}

}  // namespace cuda::fused
