// SPDX-License-Identifier: Apache-2.0
// The nodes of a region as a program of threaded vector code.
#pragma once

#include <vector>

#include "../parameter_block.hpp"
#include "../threaded.hpp"
#include "perigee/compiler.hpp"
#include "perigee/scalar.hpp"

namespace cpu {

// ---- what a node computes ----

struct NodeExpression {
  pg::Region::Call call;
  pg::ScalarProgram program;  // of a cast or clone: its input as it is
  Storage dtype = sF32;       // of the operands that are no truth values
  uint32_t dtype_code = PG_F32;
};
// Refuses, as `supports` does, what cannot be a step of a program.
void read_node(const pg::Region& region, uint32_t node, NodeExpression& out);
// 0: words of 4 bytes, 1: of 8; -1: truth values only, any will do.
int width_of(Storage s);

// ---- programs ----

// What a program finds at an operand of its frame.
struct ProgramOperand {
  enum Kind : uint8_t { kInput, kOutput, kSlot, kNumber };
  Kind kind;
  Storage storage;  // of its elements; of slots: words
  uint32_t index;   // of the region's input or output; of the number
};

struct ProgramNumber {
  pg::ScalarNumber value;
  uint64_t attrs;  // where the node's begin
  bool moved;      // rounded to `dtype` before it is a word, for Select moves elements
  Storage dtype, word;
};
struct ProgramParameters {
  ParameterBlock block;
  uint64_t attrs;
  uint32_t offset;  // in the frame's parameters
};

struct Program {
  int width = 0;
  std::vector<TileStep> steps, past;  // past: stores go past the caches
  std::vector<ProgramOperand> operands;
  std::vector<ProgramNumber> numbers;
  std::vector<ProgramParameters> parameters;
  uint32_t parameter_bytes = 0;
  int cost = 0;  // about as many cheap steps
};

// Refuses a piece that is too large.
Program assemble(const pg::Region& piece);

}  // namespace cpu
