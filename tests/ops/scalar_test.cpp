// SPDX-License-Identifier: Apache-2.0
// Scalar expressions: what is read of them, and what is said of those that are wrong. The numbers of primitives.
#include <catch2/catch.hpp>
#include <deque>
#include <sstream>

#include "fake_host.hpp"
#include "perigee/op.hpp"
#include "perigee/scalar.hpp"

using namespace pg;
using Catch::Contains;

namespace {

// An operator with those of the inputs x, y (numbers) and m, n (bools) that are named, and an attribute of each sort.
const pg_op_info& schema(const char* text, const std::string& inputs = "x") {
  static std::deque<OpBuilder> ops;  // schemas live as long as the process
  OpBuilder& op = ops.emplace_back("my_op");
  op.doc("For tests.").traits(PG_OP_ELEMENTWISE).shape([](ShapeContext& c) { c.out(0) = c.in(0); });
  if (inputs.find('x') != std::string::npos) op.input("x", kReal, "any shape", PG_INPUT_PROMOTE);
  if (inputs.find('y') != std::string::npos) op.input("y", kReal, "any shape", PG_INPUT_PROMOTE);
  if (inputs.find('m') != std::string::npos) op.input("m", kBool, "any shape");
  if (inputs.find('n') != std::string::npos) op.input("n", kBool, "any shape");
  op.attr<double>("low", 0, "a number").runtime();
  op.attr<bool>("flag", false, "a condition").choice("form", {"plain", "other"}, 0, "a condition");
  op.attr<Ints>("list", pg_ints{}, "no number").output("z", "shape of x");
  op.expression(text);
  return *op.build();
}

std::string text_of(const pg_op_info& op, const ScalarOperand& operand) {
  std::ostringstream out;
  switch (operand.kind) {
    case ScalarOperand::kNone: out << "nothing"; break;
    case ScalarOperand::kInput: out << op.inputs[operand.index]->name; break;
    case ScalarOperand::kAttribute: out << op.attrs[operand.index]->name; break;
    case ScalarOperand::kNumber: out << operand.number; break;
    case ScalarOperand::kStep: out << '#' << operand.index; break;
  }
  return out.str();
}

// "Sigmoid(x)>0 Mul(x, #0)>1": steps and the slots of their results; a truth value has a '?'.
std::string read(const char* text, const std::string& inputs = "x", bool flag = false, bool booleans = false) {
  const pg_op_info& op = schema(text, inputs);
  std::vector<char> attrs(static_cast<const char*>(op.defaults), static_cast<const char*>(op.defaults) + op.attr_size);
  const int32_t on = flag ? 1 : 0;
  for (uint32_t i = 0; i < op.attr_count; i++) {
    const std::string name = op.attrs[i]->name;
    if (name == "flag" || name == "form") std::memcpy(attrs.data() + op.attrs[i]->offset, &on, sizeof on);
  }
  const ScalarProgram program = scalar_expression(op)->program(attrs.data(), booleans);
  std::string out;
  for (int i = 0; i < program.count; i++) {
    const ScalarStep& step = program.step[i];
    out += std::string(i == 0 ? "" : " ") + math::info(step.primitive).name + "(";
    for (int k = 0; k < step.operands; k++) out += (k == 0 ? "" : ", ") + text_of(op, step.operand[k]);
    for (int k = 0; k < step.parameters; k++) out += (k == 0 ? "; " : ", ") + text_of(op, step.parameter[k]);
    out += std::string(")") + (step.truth ? "?" : "") + (step.of_truth ? "?" : "") + ">" + std::to_string(step.slot);
  }
  if (program.result.kind != ScalarOperand::kStep) out += text_of(op, program.result);
  return out;
}

std::string fault(const char* text, const std::string& inputs = "x") {
  try {
    schema(text, inputs);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an expression becomes steps over earlier ones") {
  CHECK(read("Neg(x)") == "Neg(x)>0");
  CHECK(read(" Clamp( x ; low , 2.5e1 ) ") == "Clamp(x; low, 25)>0");
  CHECK(read("x") == "x");
  CHECK(read("Mul(x, Sigmoid(x))") == "Sigmoid(x)>0 Mul(x, #0)>1");
  CHECK(read("Sub(-1, x)") == "Sub(-1, x)>0");
  CHECK(read("Add(x, Mul(low, y))", "xy") == "Mul(low, y)>0 Add(x, #0)>1");
  CHECK(read("Lerp(x, y, 0.25)", "xy") == "Lerp(x, y, 0.25)>0");
}

TEST_CASE("equal steps are there once, and slots are used again") {
  CHECK(read("Mul(Exp(x), Sub(1, Exp(x)))") == "Exp(x)>0 Sub(1, #0)>1 Mul(#0, #1)>2");
  CHECK(read("Neg(Neg(Exp(Neg(x))))") == "Neg(x)>0 Exp(#0)>1 Neg(#1)>0 Neg(#2)>1");
  CHECK(read("Add(Clamp(x; 0, 1), Clamp(x; 0, 2))") == "Clamp(x; 0, 1)>0 Clamp(x; 0, 2)>1 Add(#0, #1)>2");
}

TEST_CASE("conditions are decided by static attributes") {
  const char* text = "flag ? GeluTanh(x) : Mul(x, form ? Exp(x) : Log(x))";
  CHECK(read(text, "x", true) == "GeluTanh(x)>0");
  CHECK(read(text, "x", false) == "Log(x)>0 Mul(x, #0)>1");
  CHECK(read("flag ? Exp(x) : x", "x", false) == "x");
}

TEST_CASE("truth values are told from numbers") {
  CHECK(read("Select(m, low, x)", "xm") == "Select(m, low, x)>0");
  CHECK(read("Select(Gt(x, 0), x, Mul(x, low))") == "Gt(x, 0)?>0 Mul(x, low)>1 Select(#0, x, #1)>2");
  CHECK(read("LogicalAnd(m, n)", "mn") == "LogicalAnd(m, n)??>0");
  CHECK(read("Mul(x, m)", "xm") == "Mul(x, m)>0");
  CHECK(read("BitwiseNot(m)", "m") == "LogicalNot(m)??>0");
  CHECK(read("BitwiseNot(x)") == "BitwiseNot(x)>0");
  CHECK(read("BitwiseNot(x)", "x", false, true) == "LogicalNot(x)>0");
}

TEST_CASE("what is wrong with an expression is said by operator and column") {
  CHECK(fault("Neg(x") == "operator 'my_op': scalar expression \"Neg(x\", column 6: expected ')', found the end");
  CHECK_THAT(fault("Sigmiod(x)"), Contains("column 1: there is no primitive 'Sigmiod'; did you mean Sigmoid?"));
  CHECK_THAT(fault("sigmoid(x)"), Contains("there is no primitive 'sigmoid'; did you mean Sigmoid?"));
  CHECK_THAT(fault("Add(x, lo)"), Contains("column 8: 'lo' is neither an input nor an attribute; did you mean low?"));
  CHECK_THAT(fault("Add(x, list)"), Contains("column 8: attribute 'list' is no number"));
  CHECK_THAT(fault("Add(x)"), Contains("column 1: Add has 1 operand; expected 2"));
  CHECK_THAT(fault("Clamp(x; 1)"), Contains("column 1: Clamp has 1 parameter; expected 2"));
  CHECK_THAT(fault("Neg(x; 1, 2, 3, 4)"), Contains("Neg has too many parameters"));
  CHECK_THAT(fault("Clamp(x; 1, x)"), Contains("column 13: 'x' is an input; a parameter is an attribute or a number"));
  CHECK_THAT(fault("Neg(x) 1"), Contains("column 8: unexpected '1' behind the expression"));
  CHECK_THAT(fault("Neg(&)"), Contains("column 5: expected an input, a number or a primitive, found '&'"));
  CHECK_THAT(fault("low ? x : Neg(x)"), Contains("attribute 'low' is a runtime one"));
  CHECK_THAT(fault("list ? x : Neg(x)"), Contains("attribute 'list' is no number"));
  CHECK_THAT(fault("flag ? x : Gt(x, 0)"), Contains("one way gives a truth value and the other a number"));
  CHECK_THAT(fault("flag ? x : 1"), Contains("one way gives the same for all elements and the other does not"));
  CHECK_THAT(fault("flag ? x"), Contains("column 9: expected ':', found the end"));
  CHECK_THAT(fault("Neg(x)", "xy"), Contains("input 'y' is not used"));
  CHECK_THAT(fault("Add(1, 2)"), Contains("Add is given numbers only"));
  CHECK_THAT(fault("low"), Contains("the result is the same for all elements"));
  CHECK_THAT(fault("Select(x, x, 1)"), Contains("what Select looks at first is no truth value"));
  CHECK_THAT(fault("Exp(m)", "m"), Contains("Exp takes no truth values"));
  CHECK_THAT(fault("Add(m, 1)", "m"), Contains("Add is given a number beside truth values"));
  std::string deep;
  for (int i = 0; i < 40; i++) deep += "Neg(";
  CHECK_THAT(fault(deep.c_str()), Contains("more than 32 calls deep"));
}

TEST_CASE("an expression that is of no use here is as none") {
  pg_op_info later = schema("Neg(x)");
  later.scalar = "NotYetThere(x)";
  CHECK(scalar_expression(later) == nullptr);
  pg_op_info older = schema("Neg(x)");
  older.size = PG_SIZE(pg_op_info, reserved);
  CHECK(scalar_expression(older) == nullptr);
}

TEST_CASE("elementwise operators have expressions, and nothing else has one") {
  int count = 0;
  for (uint32_t i = 0; i < fake::table().count; i++) {
    const pg_op_info& op = *fake::table().ops[i];
    INFO(op.name);
    CHECK(((op.traits & PG_OP_ELEMENTWISE) != 0) == (op.scalar != nullptr));
    if (op.scalar == nullptr) continue;
    count++;
    CHECK(scalar_expression(op) != nullptr);
  }
  CHECK(count > 110);
}

// What schemas, plans and code generators name. A row more is a row at the end; nothing else may change.
TEST_CASE("primitives keep their numbers") {
  std::istringstream names(
      "Add Sub Mul Maximum Minimum Pow Remainder FloorDiv Fmod Fmax Fmin Div Atan2 Hypot Copysign LogAddExp "
      "LogAddExp2 Xlogy BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift Eq Ne Lt Le Gt Ge LogicalAnd "
      "LogicalOr LogicalXor Addcmul Lerp Addcdiv Select Neg Abs Sign Square Relu Relu6 Clamp Hardtanh Threshold "
      "NanToNum Reciprocal Sqrt Rsqrt Deg2rad Rad2deg Frac Hardshrink Softshrink Softsign Hardswish Hardsigmoid "
      "LeakyRelu Floor Ceil Round Trunc Exp Exp2 Expm1 Log Log1p Log2 Log10 Sin Cos Tan Sinh Cosh Tanh Asin "
      "Acos Atan Asinh Acosh Atanh Erf Erfc Logit Sigmoid Silu Softplus Elu Celu Selu Mish LogSigmoid "
      "Tanhshrink Gelu GeluTanh Erfinv Lgamma Digamma Polygamma Sinc RoundTo BitwiseNot IsNan IsInf IsFinite "
      "IsPosInf IsNegInf Signbit LogicalNot ReluGrad HardtanhGrad LeakyReluGrad EluGrad SigmoidGrad TanhGrad "
      "SiluGrad SoftplusGrad MishGrad HardswishGrad GeluGrad GeluTanhGrad");
  int number = 0;
  for (std::string name; names >> name; number++) {
    REQUIRE(number < math::kPrimitiveCount);
    CHECK(math::kPrimitives[number].name == name);
  }
  CHECK(number == math::kPrimitiveCount);
}
