// SPDX-License-Identifier: Apache-2.0
// A list of what is launched one after the other, over operands in memory that it names.
#pragma once

#include <cstdint>
#include <vector>

#include "call/signature.hpp"

namespace perigee {

constexpr uint32_t no_number = UINT32_MAX;

// Where a tensor lies: in memory that the list makes (a slot), or in that of a tensor from outside.
struct MemoryPlace {
  uint32_t base = no_number;  // a slot, or the number of a tensor
  bool outside = false;
  int64_t offset = 0;  // bytes into the slot, or behind where the tensor begins
  bool operator==(const MemoryPlace&) const = default;
};

// A tensor as launches see it.
struct Operand {
  MemoryPlace place;
  TensorRef tensor;
  bool constant = false;  // of a frozen list: from outside, no argument, and written to by none of its launches
};

struct Launch {
  SignatureRef signature;                         // null: something else, which nothing is joined with
  uint32_t item = 0;                              // of who made the list
  std::vector<uint32_t> inputs, outputs, raised;  // operands; no_number: absent
  std::vector<uint8_t> attrs;
  uint32_t workspace = no_number;  // a slot
};

struct Launches {
  std::vector<Operand> operands;
  std::vector<Launch> launches;
  // Every launch finds the same attributes and constants: what is made of them may be kept, and results may differ as
  // those of other orders of sums do.
  bool frozen = false;
};

}  // namespace perigee
