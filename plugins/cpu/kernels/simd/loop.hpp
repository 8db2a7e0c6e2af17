// SPDX-License-Identifier: Apache-2.0
// For the files of this folder only: each is compiled once per instruction set, into namespace cpu::PG_CPU_ISA.
// Nothing in them may be emitted as a weak symbol, or the linker could give AVX-512 code to an older processor: all
// templates are in anonymous namespaces, all shared helpers always_inline, no standard containers or algorithms.
#pragma once

#include "../../simd.hpp"

#ifndef PG_CPU_ISA
#define PG_CPU_ISA generic
#endif

// No dependence between iterations, so that the compiler vectorises also where output and input are the same memory.
#if defined(__clang__)
#define PG_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define PG_LOOP _Pragma("GCC ivdep")
#endif

namespace cpu::PG_CPU_ISA {

// Whether a loop of floats should look for arguments that `Op::Common` cannot take (perigee/kernels/trigonometry.hpp),
// and how many at a time.
template <class Op, class T>
concept HasCommon = __is_same(T, float) && requires {
  typename Op::Common;
};
constexpr int64_t kCommonPiece = 512;

namespace {
// An operator's parameters; zeros where it has none.
template <class T>
struct Params {
  T p[pg::math::kMaxParameters] = {};
  explicit Params(const void* params) {
    if (params != nullptr) __builtin_memcpy(p, params, sizeof p);
  }
};
}  // namespace

void fill_binary(Simd& table);
void fill_unary(Simd& table);
void fill_bf16(Simd& table);
void fill_move(Simd& table);
void fill_reduce(Simd& table);
void fill_losses(Simd& table);
void fill_bools(Simd& table);
void fill_rows(Simd& table);
void fill_short_lines(Simd& table);
void fill_short_folds(Simd& table);
void fill_norm_lines(Simd& table);
void fill_random(Simd& table);
void fill_update(Simd& table);
void fill_attention(Simd& table);
void fill_resample(Simd& table);
void fill_bags(Simd& table);
void fill_image_rows(Simd& table);
void fill_narrow_floats(Simd& table);
void fill_narrow_whole(Simd& table);

}  // namespace cpu::PG_CPU_ISA
