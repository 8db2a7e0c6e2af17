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
  read_node(piece_, n, node);
  const pg::KernelCall call(&node.call.call);
  const uint32_t result = pg::dtype_of(call.out(0));
  const std::string made = node.moves ? names[raw.inputs[0]] : expression(call, node, raw);
  names[raw.outputs[0]] = pg::format("v%u", n);
  line(pg::format("const auto v%u = rounded<%s>(%s);", n, storage_name(result), made.c_str()));
}

std::string NodeText::operand(const pg::KernelCall& call, const NodeExpression& node, const pg_node& raw, int k) {
  const ScalarOperand& operand = node.step.operand[k];
  if (!is_number(call, operand)) return names[raw.inputs[operand.index]];
  KernelNumber made;
  made.use = node.step.primitive == pg::math::pSelect ? KernelNumber::kMoved : KernelNumber::kOperand;
  made.dtype = node.dtype;
  made.attrs = raw.attrs_offset;
  made.value = pg::ScalarNumber(call, operand);
  return number(std::move(made), compute_name(node.dtype));
}

std::string NodeText::expression(const pg::KernelCall& call, const NodeExpression& node, const pg_node& raw) {
  const pg::ScalarStep& step = node.step;
  const pg::math::PrimitiveInfo& info = pg::math::info(step.primitive);
  const bool special = info.cost == pg::math::kSpecial;
  const char* type = compute_name(node.dtype);
  std::string in[3];
  for (int k = 0; k < step.operands; k++) in[k] = operand(call, node, raw, k);
  if (info.form == pg::math::kChoice) return "(" + in[0] + " != 0 ? " + in[1] + " : " + in[2] + ")";
  if (step.primitive == pg::math::pPow && is_number(call, step.operand[1])) {
    KernelNumber power;
    power.use = KernelNumber::kPower;
    power.dtype = node.dtype;
    power.attrs = raw.attrs_offset;
    power.value = pg::ScalarNumber(call, step.operand[1]);
    return "power_of(" + in[0] + ", " + in[1] + ", " + number(std::move(power), "uint64_t") + ")";
  }
  std::string arguments = special ? "static_cast<double>(" + in[0] + ")" : in[0];
  for (int k = 1; k < step.operands; k++) arguments += ", " + in[k];
  if (pg::math::has_parameters(info.form)) arguments += ", " + parameters(call, node, raw, special);
  const std::string made = pg::format("%s()(%s)", info.name, arguments.c_str());
  if (info.result == pg::math::kTruth) return "static_cast<int32_t>(" + made + ")";
  return special ? pg::format("static_cast<%s>(", type) + made + ")" : made;
}

// Declares the array that a functor takes, and answers its name.
std::string NodeText::parameters(const pg::KernelCall& call, const NodeExpression& node, const pg_node& raw,
                                 bool special) {
  const char* type = special ? "double" : compute_name(node.dtype);
  const std::string name = pg::format("q%zu", arrays_++);
  std::string values;
  const pg::math::Parameters known(call, node.step, node.dtype);
  for (int i = 0; i < pg::math::kMaxParameters; i++) {
    values += i == 0 ? "" : ", ";
    if (i >= known.count()) {
      values += "0";
      continue;
    }
    KernelNumber made;
    made.use = special ? KernelNumber::kSpecial : KernelNumber::kParameter;
    made.index = static_cast<uint8_t>(i);
    made.dtype = node.dtype;
    made.attrs = raw.attrs_offset;
    made.parameters = known;
    values += number(std::move(made), type);
  }
  line(pg::format("const %s %s[] = {%s};", type, name.c_str(), values.c_str()));
  return name;
}

}  // namespace cuda::fused
