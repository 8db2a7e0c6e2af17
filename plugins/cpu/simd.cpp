// SPDX-License-Identifier: Apache-2.0
// Chooses the instruction set.
#include "simd.hpp"

#include "attention_pass.hpp"
#include "lstm_piece.hpp"
#include "narrow_conv.hpp"
#include "winograd.hpp"

#include <cstdlib>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace cpu {

const Simd* simd = nullptr;
NarrowConvLoop narrow_conv;
LstmLoops lstm_loops;
WinogradLoops winograd_loops;
PairedAttention paired_attention;

#if defined(__x86_64__)
namespace avx2 {
const Simd* make_table();
NarrowConvLoop make_narrow_conv();
LstmLoops make_lstm();
WinogradLoops make_winograd();
}  // namespace avx2
namespace avx512 {
const Simd* make_table();
NarrowConvLoop make_narrow_conv();
LstmLoops make_lstm();
WinogradLoops make_winograd();
}  // namespace avx512
namespace avx512_bf16 {
PairedAttention make_paired_attention();
}

// clang++ 14's __builtin_cpu_supports does not know it.
bool has_f16c() {
  unsigned a, b, c = 0, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

bool has_vnni() {
  const char* wanted = std::getenv("PERIGEE_CPU_ISA");
  return __builtin_cpu_supports("avx512vnni") && (wanted == nullptr || std::strcmp(wanted, "avx512") != 0);
}

const char* choose_simd() {
  __builtin_cpu_init();
  bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!has_avx2) return "this processor has no AVX2, FMA and F16C, which the CPU kernels are compiled for";
  const char* wanted = std::getenv("PERIGEE_CPU_ISA");
  bool lesser = wanted != nullptr && std::strcmp(wanted, "avx2") == 0;
  const bool large = has_avx512 && !lesser;
  simd = large ? avx512::make_table() : avx2::make_table();
  narrow_conv = large ? avx512::make_narrow_conv() : avx2::make_narrow_conv();
  lstm_loops = large ? avx512::make_lstm() : avx2::make_lstm();
  winograd_loops = large ? avx512::make_winograd() : avx2::make_winograd();
  if (large && wanted == nullptr && __builtin_cpu_supports("avx512bf16"))
    paired_attention = avx512_bf16::make_paired_attention();
  return nullptr;
}
#else
namespace generic {
const Simd* make_table();
NarrowConvLoop make_narrow_conv();
LstmLoops make_lstm();
WinogradLoops make_winograd();
}  // namespace generic

const char* choose_simd() {
  simd = generic::make_table();
  narrow_conv = generic::make_narrow_conv();
  lstm_loops = generic::make_lstm();
  winograd_loops = generic::make_winograd();
  return nullptr;
}
#endif

}  // namespace cpu
