// SPDX-License-Identifier: Apache-2.0
// What the nodes of a region compute, as far as generated kernels can: a scalar expression, a cast or a clone.
#pragma once

#include "perigee/compiler.hpp"
#include "perigee/scalar.hpp"

namespace cuda::fused {

struct NodeExpression {
  pg::Region::Call call;
  bool moves = false;         // a cast or a clone: its first input as it is
  pg::ScalarProgram program;  // otherwise
  uint32_t dtype = 0;         // of the operands that are no truth values
  bool faulty = false;        // whole numbers may be divided by zero, and the like
  // What a step computes on.
  uint32_t dtype_of(const pg::ScalarStep& step) const { return step.of_truth ? static_cast<uint32_t>(PG_B8) : dtype; }
};

// Refuses, as `supports` does, what is no part of a generated kernel. What may fail is a kernel by itself (`alone`),
// whose launch the error names.
void read_node(const pg::Region& region, uint32_t node, NodeExpression& out, bool alone = false);
// The same of a call by itself; out.call is left as it is.
void read_call(const pg::KernelCall& call, NodeExpression& out);

// The operand is a number of the call, the same for all elements.
inline bool is_number(const pg::KernelCall& call, const pg::ScalarOperand& operand) {
  return operand.uniform() || !call.has(operand.index);
}

// Of numbers of a class, as of whole ones that are divided by zero.
bool may_fail(const pg::math::PrimitiveInfo& info, uint32_t dtype_class);

// Names of types in generated sources: of an element in memory, and of the number that it is computed as. NULL: there
// is none.
const char* storage_name(uint32_t dtype);
const char* compute_name(uint32_t dtype);

}  // namespace cuda::fused
