// SPDX-License-Identifier: Apache-2.0
// Dtypes as the kernels number them, what they compute in, and conversions.
#pragma once

#include <cstring>

#include "perigee/kernel.hpp"
#include "perigee/kernels/float8.hpp"
#include "simd.hpp"

namespace cpu {

constexpr int64_t kBlock = 1024;  // elements that are converted or gathered at a time: they stay in the L1 cache
// Elements below which a second thread costs more than it brings: of cheap arithmetic in float32, of bfloat16 from
// memory to memory, of functions that take half a nanosecond and more.
constexpr int64_t kGrain = 32768, kGrainBF16 = 2 * kGrain, kGrainCostly = kGrain / 2;
constexpr int64_t kStreamBytes = int64_t{4} << 20;  // outputs from here on are written past the caches

// kStorageCount for dtypes that these kernels do not know.
Storage storage_of(uint32_t dtype);
inline Storage storage_of(const pg_tensor& t) { return storage_of(pg::dtype_of(t)); }
constexpr int kStorageBytes[] = {8, 4, 2, 2, 8, 4, 2, 1, 1, 1, 1, 1};
constexpr Compute kComputeOf[] = {kF64, kF32, kF32, kF32, kI64, kI32, kI32, kI32, kI32, kI32, kF32, kF32};
constexpr Storage kStorageOf[] = {sF32, sF64, sI64, sI32};  // of a Compute
inline bool is_float(Storage s) { return s <= sBF16; }
inline bool is_float8(Storage s) { return s == sE4M3FN || s == sE5M2; }

// Converts n dense elements. float to int truncates towards zero; to bool: not equal to zero.
void convert(Storage from, Storage to, const void* source, void* target, int64_t n);
// One number in a storage type; `target` needs 8 bytes.
void put_number(Storage to, double value, void* target);
void put_number(Storage to, const pg_number& value, void* target);
// Sets n dense elements of `bytes` each to the element at `value`.
void fill_elements(void* target, const void* value, int bytes, int64_t n);

// Calls f with a value of the C++ type of a storage type other than float8: visit(s, [&](auto zero) { using T =
// decltype(zero); ... }).
template <class F>
auto visit(Storage s, F&& f) {
  switch (s) {
    case sF64: return f(double{});
    case sF32: return f(float{});
    case sF16: return f(pg::f16{});
    case sBF16: return f(pg::bf16{});
    case sI64: return f(int64_t{});
    case sI32: return f(int32_t{});
    case sI16: return f(int16_t{});
    case sI8: return f(int8_t{});
    case sU8: return f(uint8_t{});
    default: return f(bool{});
  }
}
// By size only, for code that moves elements without looking at them.
template <class F>
auto visit_bytes(int bytes, F&& f) {
  switch (bytes) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    default: return f(uint64_t{});
  }
}

// ---- for `supports` ----

inline void require_dense(const pg::KernelCall& call, const pg_tensor& t) {
  if (t.class_id != PG_CLASS_DENSE || t.layout != 0 || t.bit_offset != 0) {
    pg::fail_support(pg::format("%s on cpu takes dense tensors in plain layouts", call.op()));
  }
  if (storage_of(t) == kStorageCount) {
    pg::fail_support(pg::format("%s on cpu does not take %s", call.op(), pg::dtype_name(pg::dtype_of(t))));
  }
}
// All inputs and outputs that are there are dense and of known dtypes.
inline void require_all_dense(const pg::KernelCall& call) {
  for (uint32_t i = 0; i < call.input_count(); i++) {
    if (call.has(i)) require_dense(call, call.in(i));
  }
  for (uint32_t i = 0; i < call.output_count(); i++) {
    if (call.has_output(i)) require_dense(call, call.out(i));
  }
}
// Refuses large inputs that lie turned, seen from the result: the host then copies them, block by block, which
// takes a half to a fifth of what picking up their elements one by one does.
void refuse_turned(const pg::KernelCall& call);
[[noreturn]] inline void refuse(const pg::KernelCall& call) {
  pg::fail_support(pg::format("%s on cpu does not take (%s)", call.op(), pg::describe(call).c_str()));
}

}  // namespace cpu
