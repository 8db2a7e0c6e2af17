// SPDX-License-Identifier: Apache-2.0
// A region as the source of one kernel, and what a launch of that kernel is given. Nothing of CUDA's is needed for it.
//
// The source depends on the operators, the dtypes and which operands lie alike; sizes, strides, addresses and the
// numbers of a call are arguments, so that it serves all shapes that are like these. Its one parameter is a struct:
//
//   int64_t count, items;         elements; packets
//   uint64_t aligned;             a bit an operand: whole packets may be read or written in one access
//   char* data[operands];         inputs, then outputs
//   uint64_t number[numbers];     at least one; of a captured launch the first one is the address of all
//   Axis axis[rank];              at least one
//   int64_t stride[layouts][rank];
//   FaultSite fault;              where it may fail
#pragma once

#include <string>
#include <vector>

#include "perigee/compiler.hpp"
#include "perigee/kernels/parameters.hpp"
#include "perigee/scalar.hpp"

namespace cuda::fused {

inline constexpr char kKernelName[] = "region";
constexpr uint32_t kMostOperands = 64;     // a bit each
constexpr uint32_t kMostArguments = 4096;  // bytes: what every launch has room for

// A number of the call, as the kernel takes it: in the low bytes of a word.
struct KernelNumber {
  enum Use : uint8_t {
    kOperand,    // in the type of the arithmetic, unrounded
    kMoved,      // rounded to the dtype first
    kParameter,  // of the primitive
    kSpecial,    // the same, in double whatever the dtype
    kPower,      // which arithmetic an exponent means (power_of)
    kReal        // an attribute, in double
  };
  Use use = kOperand;
  uint8_t index = 0;   // of the parameter
  uint32_t dtype = 0;  // of the arithmetic
  uint64_t attrs = 0;  // where the node's begin
  pg::ScalarNumber value;
  pg::math::Parameters parameters;
  pg::Runtime<double> real;
};
// Throws where the call's number is not to be computed with.
uint64_t number_word(const KernelNumber& number, const pg_launch& launch);

struct Operand {
  uint32_t dtype = 0, layout = 0;
  bool splat = false;   // the elements of a packet are all the same one
  bool ragged = false;  // packets do not all begin at multiples of their size
};

struct Source {
  std::string text;  // behind what complete() puts before it
  int width = 1;     // elements of a packet
  int64_t count = 0, items = 0;
  std::vector<Operand> operands;  // inputs, then outputs
  std::vector<KernelNumber> numbers;
  std::vector<uint64_t> axes, strides;  // as they lie in the struct
  bool faulty = false;                  // notes faults
  uint64_t argument_bytes() const;
  // `renewed`: of the kernel that finds its numbers in memory, where they may be others at the next launch.
  std::string complete(bool renewed) const;
};

Source write_source(const pg::Region& piece);
// What a Writer makes of a piece. Refuses one that is too large.
template <class Writer, class Made>
Made write_piece(const pg::Region& piece) {
  const pg_region& raw = *piece.raw;
  if (raw.output_count == 0 || raw.input_count + raw.output_count > kMostOperands)
    pg::fail_support("the region has too many operands");
  Made made;
  Writer(piece, made);
  if (made.argument_bytes() > kMostArguments) pg::fail_support("the region has too many arguments");
  return made;
}

// Statements that read operand k as p<k>, and that write p<k>; `count`: elements of a packet that is not whole.
class OperandWalk;
std::string load_text(const Source& source, const OperandWalk& walk, uint32_t k, const char* count);
std::string store_text(const Source& source, const OperandWalk& walk, uint32_t k, const char* count);

}  // namespace cuda::fused
