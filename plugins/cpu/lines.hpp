// SPDX-License-Identifier: Apache-2.0
// Operators that work on lines, the last axes of their first input (sums also on columns, the first axes), each line by
// itself: as parts of regions (fused/), which have a few lines of all tensors in the caches at a time. The functions
// are those that the kernel of the operator runs, so the bits are the same.
#pragma once

#include <memory>

#include "perigee/kernel.hpp"

namespace cpu {

class Reduction;

class Lines {
 public:
  explicit Lines(uint32_t axes, bool leading = false, bool makes = false)
      : axes(axes), leading(leading), makes(makes) {}
  virtual ~Lines() = default;
  const uint32_t axes;  // of input 0, at its end: one line
  const bool leading;   // they are the first ones instead: one column. It has a reduction(), and is never run()
  const bool makes;     // lines are those of output 0 instead, row-major, and made of inputs from outside

  // Lines that go together, a power of two: run() is given whole multiples of them, but for the last ones. 0: any.
  virtual int64_t together() const { return 0; }

  // What all lines of a launch share is made once, in so many bytes.
  virtual uint64_t shared_bytes() const { return 0; }
  virtual void share(const pg_launch&, char*) const {}
  // Bytes that a thread has for itself: launch.workspace of run().
  virtual uint64_t room_bytes() const { return 0; }
  // Lines [first, last). in, out: where whole tensors begin, or would begin; NULL where absent.
  virtual void run(const pg_launch& launch, const char* shared, const char* const* in, char* const* out, int64_t first,
                   int64_t last) const = 0;
  // The output is read soon: it must not go past the caches.
  virtual void keep_near(uint32_t) {}
  // Where the operator takes lines of any length in pieces: how.
  virtual const Reduction* reduction() const { return nullptr; }
  virtual int cost() const { return 1; }  // of an element, in cheap steps
};

// What prepares a call. Refuses, as `supports` does, calls that do not go line by line over dense tensors.
using MakeLines = std::unique_ptr<Lines> (*)(const pg::KernelCall& call);
int add_lines(const char* op, MakeLines make);
MakeLines find_lines(const char* op);  // NULL: no such operator

// Elements of one of x's lines, which is what the operator's lines are lines of.
inline int64_t length_of(const Lines& lines, const pg_tensor& x) {
  int64_t length = 1;
  const uint32_t first = lines.leading ? 0 : x.rank - lines.axes;
  for (uint32_t i = 0; i < lines.axes; i++) length *= x.shape[first + i];
  return length;
}

// How many axes at the end of input 0 the mask names; refuses other masks, and tensors that are not row-major.
uint32_t last_axes(const pg::KernelCall& call, uint32_t axes);
// How many axes at its beginning; 0: they are not the first ones, or all. Refuses tensors that are not row-major.
uint32_t first_axes(const pg::KernelCall& call, uint32_t axes);

template <class Type>
int add_lines(const char* op) {
  return add_lines(op, [](const pg::KernelCall& call) -> std::unique_ptr<Lines> { return Type::make_lines(call); });
}

}  // namespace cpu

#define PG_LINES(op, Type) \
  [[maybe_unused]] static const int PG_CONCAT(pg_lines_, __COUNTER__) = ::cpu::add_lines<Type>(op)
