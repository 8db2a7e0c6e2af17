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

void check_step(const pg::KernelCall& call, NodeExpression& node, const pg::ScalarStep& step) {
  const pg::math::PrimitiveInfo& info = pg::math::info(step.primitive);
  const uint32_t kind = pg::dtype_class(node.dtype_of(step));
  const uint8_t type = kind == PG_M_FLOAT  ? pg::math::kOfFloats
                       : kind == PG_M_BOOL ? pg::math::kOfBooleans
                                           : pg::math::kOfIntegers;
  if ((info.types & type) == 0) refuse_node(call);
  node.faulty |= may_fail(info, kind);
  if (info.cost == pg::math::kSpecial && step.parameters > 1) refuse_node(call);
  if (info.form == pg::math::kChoice && is_number(call, step.operand[0])) refuse_node(call);
}

void check_program(const pg::KernelCall& call, NodeExpression& node) {
  bool tensors = false;
  auto check_operand = [&](const ScalarOperand& operand) {
    if (operand.kind == ScalarOperand::kStep || is_number(call, operand)) return;
    tensors = true;
    if (pg::dtype_of(call.in(operand.index)) != (operand.truth ? PG_B8 : node.dtype)) refuse_node(call);
  };
  for (int i = 0; i < node.program.count; i++) {
    const pg::ScalarStep& step = node.program.step[i];
    check_step(call, node, step);
    for (int k = 0; k < step.operands; k++) check_operand(step.operand[k]);
  }
  const ScalarOperand& result = node.program.result;
  if (result.kind != ScalarOperand::kStep && is_number(call, result)) refuse_node(call);
  check_operand(result);
  if (!tensors || pg::dtype_of(call.out(0)) != (result.truth ? PG_B8 : node.dtype)) refuse_node(call);
}

}  // namespace

bool may_fail(const pg::math::PrimitiveInfo& info, uint32_t dtype_class) {
  return dtype_class != PG_M_FLOAT && info.checks != pg::math::kNothing;
}

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

void read_call(const pg::KernelCall& call, NodeExpression& out) {
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
  out.program = scalar.program;
  out.dtype = scalar.dtype;
  out.faulty = false;
  check_program(call, out);
}

void read_node(const pg::Region& region, uint32_t number, NodeExpression& out, bool alone) {
  region.describe(number, out.call);
  const pg::KernelCall call(&out.call.call);
  read_call(call, out);
  if (out.faulty && !alone) refuse_node(call);
}

}  // namespace cuda::fused
