// SPDX-License-Identifier: Apache-2.0
// What the kernels of two operands share (binary.cu, compare.cu).
#pragma once

#include "../elementwise.cuh"
#include "../kernel.hpp"

namespace cuda::elementwise {

[[noreturn]] inline void refuse(const pg::KernelCall& call) {
  pg::fail_support(pg::format("%s on cuda does not take (%s)", call.op(), pg::describe(call).c_str()));
}

// Whichever is a tensor.
inline const pg_tensor& operand(const pg::KernelCall& call) { return call.has(0) ? call.in(0) : call.in(1); }

// The position of the number that stands in for an operand; -1: there is none.
inline int number_of_call(const pg::KernelCall& call) { return !call.has(0) ? 0 : !call.has(1) ? 1 : -1; }

inline void check_binary(const pg::KernelCall& call) {
  check_dtypes(call, kAny);
  if (!call.has(0) && !call.has(1)) refuse(call);
  if (call.has(0) && call.has(1) && pg::dtype_of(call.in(0)) != pg::dtype_of(call.in(1))) refuse(call);
}

inline Loop<3> binary_loop(const pg::KernelCall& call, uint32_t widths) {
  return Loop<3>(
      {typed(call.out(0)), call.has(0) ? typed(call.in(0)) : number(), call.has(1) ? typed(call.in(1)) : number()},
      widths);
}

}  // namespace cuda::elementwise
