// SPDX-License-Identifier: Apache-2.0
// perigee/scalar.hpp: the scalar expressions of elementwise operators (pg_op_info.scalar), read.
//
//   const ScalarExpression* known = scalar_expression(*call.raw->op);      // "Mul(x, Sigmoid(x))"
//   ScalarProgram program = known->program(call.raw->attrs, false);        // Sigmoid(x), Mul(x, step 0)
//   for (int i = 0; i < program.count; i++) ... program.step[i] ...
//
// plugin.h has the grammar and what an expression means. A program is the expression with its conditions decided: steps
// in postfix order, each a primitive by number (perigee/kernels/primitives.hpp) whose operands are inputs, numbers or
// the results of earlier steps. Equal steps are there once.
#pragma once

#include <string>
#include <vector>

#include "perigee/kernel.hpp"
#include "perigee/kernels/primitives.hpp"

namespace pg {

constexpr int kMaxScalarSteps = 32;

struct ScalarOperand {
  enum Kind : uint8_t { kNone, kInput, kAttribute, kNumber, kStep };
  Kind kind = kNone;
  bool truth = false;  // is a bool, whatever the dtype of the call
  uint16_t index = 0;  // of the declared input, of the attribute, of the step
  double number = 0;   // of kNumber
  bool operator==(const ScalarOperand&) const = default;
  // The same for all elements. (So is an input that a Lua number stands in for.)
  bool uniform() const { return kind == kAttribute || kind == kNumber; }
};

struct ScalarStep {
  math::Primitive primitive = math::pAdd;
  uint8_t operands = 0, parameters = 0;
  bool of_truth = false;  // its operands are truth values all: it computes on bool
  bool truth = false;     // its result is one
  uint8_t slot = 0;       // the temporary that holds the result
  ScalarOperand operand[3], parameter[math::kMaxParameters];
};

struct ScalarProgram {
  int count = 0;
  ScalarStep step[kMaxScalarSteps];
  ScalarOperand result;  // a step, or an input as it is
  // How many temporaries hold what is alive at a time. A step's is none of its operands'.
  int slots = 0;
};

class ScalarExpression {
 public:
  // Throws what is wrong with the text, naming the operator and the column.
  explicit ScalarExpression(const pg_op_info& op);
  // The program of a call. `booleans`: its operands are of dtype bool.
  ScalarProgram program(const void* attrs, bool booleans) const;
  // Bits of the declared inputs that are truth values: those of which only bool is taken.
  uint32_t truth_inputs() const { return truth_inputs_; }

 private:
  friend class ScalarParser;
  struct Node {
    enum Kind : uint8_t { kLeaf, kPrimitive, kCondition };
    Kind kind = kLeaf;
    bool truth = false, uniform = false, of_truth = false;
    math::Primitive primitive = math::pAdd;
    uint16_t attribute = 0;  // of a condition
    ScalarOperand leaf;
    int child[3] = {-1, -1, -1};
    uint8_t parameters = 0;
    ScalarOperand parameter[math::kMaxParameters];
  };
  ScalarOperand emit(int node, const void* attrs, bool booleans, ScalarProgram& program) const;

  const pg_op_info* op_;
  std::vector<Node> nodes_;
  int root_ = -1;
  uint32_t truth_inputs_ = 0;
};

// An operator's expression, read once. NULL where it has none, or one that this build cannot read (of primitives that
// came later, say): then it is as if it had none. Any thread.
const ScalarExpression* scalar_expression(const pg_op_info& op);

// ---- for kernels of PG_KERNEL_SCALAR ----

// What a call's expression comes to. Refuses, for `supports`, what no expression describes: inputs of different dtypes.
class ScalarCall {
 public:
  explicit ScalarCall(const KernelCall& call);
  ScalarProgram program;
  uint32_t dtype = 0;  // of the operands that are no truth values
};

// A number of a call that is the same for all elements: found at prepare, read at launch.
class ScalarNumber {
 public:
  ScalarNumber() = default;
  // An attribute, a number, or the Lua number that stands in for an input.
  ScalarNumber(const KernelCall& call, const ScalarOperand& operand);
  pg_number operator()(const void* attrs) const;
  pg_number operator()(const pg_launch& launch) const { return (*this)(launch.attrs); }

 private:
  bool given_ = false;
  uint32_t kind_ = 0, offset_ = 0;
  pg_number number_{};
};

}  // namespace pg
