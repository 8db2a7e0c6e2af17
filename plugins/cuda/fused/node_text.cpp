// SPDX-License-Identifier: Apache-2.0
#include "node_text.hpp"

#include "perigee/kernels/strided.hpp"

namespace cuda::fused {

using pg::ScalarOperand;

// A word of the arguments, as the kernel reads it.
std::string NodeText::number(KernelNumber number, const char* type) {
  numbers_.push_back(std::move(number));
  return pg::format("bits_as<%s>(NUMBER(%zu))", type, numbers_.size() - 1);
}

void NodeText::add(uint32_t n) {
  const pg_node& raw = piece_.node(n);
  NodeExpression node;
  read_node(piece_, n, node, piece_.node_count() == 1);
  const pg::KernelCall call(&node.call.call);
  Steps steps{call, node, raw, {}};
  for (int i = 0; i < node.program.count; i++) {
    const pg::ScalarStep& step = node.program.step[i];
    const std::string made = expression(steps, step), step_name = pg::format("v%u_%d", n, i);
    line(pg::format("const auto %s = rounded<%s>(%s);", step_name.c_str(),
                    storage_name(step.truth ? static_cast<uint32_t>(PG_B8) : node.dtype), made.c_str()));
    steps.names.push_back(step_name);
  }
  const ScalarOperand& result = node.program.result;
  std::string& made = names[raw.outputs[0]];
  if (!node.moves && result.kind == ScalarOperand::kStep) {
    made = steps.names[result.index];
    return;
  }
  made = pg::format("v%u", n);
  line(pg::format("const auto %s = rounded<%s>(%s);", made.c_str(), storage_name(pg::dtype_of(call.out(0))),
                  names[raw.inputs[node.moves ? 0 : result.index]].c_str()));
}

std::string NodeText::operand(const Steps& s, const pg::ScalarStep& step, int k) {
  const ScalarOperand& operand = step.operand[k];
  const uint32_t dtype = s.node.dtype_of(step);
  const char* type = compute_name(dtype);
  const bool is_step = operand.kind == ScalarOperand::kStep;
  if (is_step || !is_number(s.call, operand)) {
    const std::string& name = is_step ? s.names[operand.index] : names[s.raw.inputs[operand.index]];
    const bool condition = pg::math::info(step.primitive).form == pg::math::kChoice && k == 0;
    // Beside numbers a truth value is 0 or 1.
    return operand.truth && !step.of_truth && !condition ? pg::format("static_cast<%s>(%s)", type, name.c_str()) : name;
  }
  KernelNumber made;
  made.use = step.primitive == pg::math::pSelect ? KernelNumber::kMoved : KernelNumber::kOperand;
  made.dtype = dtype;
  made.attrs = s.raw.attrs_offset;
  made.value = pg::ScalarNumber(s.call, operand);
  return number(std::move(made), type);
}

void NodeText::check(const pg::math::PrimitiveInfo& info, const std::string& operand) {
  const bool power = info.checks == pg::math::kPower;
  line(pg::format("if (i < n && %s %s 0) note_fault<cuda::FaultKind::%s>(a.fault, %s, at + i);", operand.c_str(),
                  power ? "<" : "==", power ? "kNegativePower" : "kDivisionByZero", operand.c_str()));
  faulty = true;
}

std::string NodeText::expression(const Steps& s, const pg::ScalarStep& step) {
  const pg::math::PrimitiveInfo& info = pg::math::info(step.primitive);
  const bool special = info.cost == pg::math::kSpecial;
  const uint32_t dtype = s.node.dtype_of(step);
  std::string in[3];
  for (int k = 0; k < step.operands; k++) in[k] = operand(s, step, k);
  if (may_fail(info, pg::dtype_class(dtype))) check(info, in[1]);
  if (info.form == pg::math::kChoice) return "(" + in[0] + " != 0 ? " + in[1] + " : " + in[2] + ")";
  if (step.primitive == pg::math::pPow && is_number(s.call, step.operand[1])) {
    KernelNumber power;
    power.use = KernelNumber::kPower;
    power.dtype = dtype;
    power.attrs = s.raw.attrs_offset;
    power.value = pg::ScalarNumber(s.call, step.operand[1]);
    return "power_of(" + in[0] + ", " + in[1] + ", " + number(std::move(power), "uint64_t") + ")";
  }
  std::string arguments = special ? "static_cast<double>(" + in[0] + ")" : in[0];
  for (int k = 1; k < step.operands; k++) arguments += ", " + in[k];
  if (pg::math::has_parameters(info.form)) arguments += ", " + parameters(s, step, special);
  const std::string made = pg::format("%s()(%s)", info.name, arguments.c_str());
  if (info.result == pg::math::kTruth) return "static_cast<int32_t>(" + made + ")";
  return special ? pg::format("static_cast<%s>(", compute_name(dtype)) + made + ")" : made;
}

// Declares the array that a functor takes, and answers its name.
std::string NodeText::parameters(const Steps& s, const pg::ScalarStep& step, bool special) {
  const uint32_t dtype = s.node.dtype_of(step);
  const char* type = special ? "double" : compute_name(dtype);
  const std::string name = pg::format("q%zu", arrays_++);
  std::string values;
  const pg::math::Parameters known(s.call, step, dtype);
  for (int i = 0; i < pg::math::kMaxParameters; i++) {
    values += i == 0 ? "" : ", ";
    if (i >= known.count()) {
      values += "0";
      continue;
    }
    KernelNumber made;
    made.use = special ? KernelNumber::kSpecial : KernelNumber::kParameter;
    made.index = static_cast<uint8_t>(i);
    made.dtype = dtype;
    made.attrs = s.raw.attrs_offset;
    made.parameters = known;
    values += number(std::move(made), type);
  }
  line(pg::format("const %s %s[] = {%s};", type, name.c_str(), values.c_str()));
  return name;
}

}  // namespace cuda::fused
