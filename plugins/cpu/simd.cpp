// SPDX-License-Identifier: Apache-2.0
// Chooses the instruction set.
#include "simd.hpp"

#include <cstdlib>
#include <cstring>

namespace cpu {

const Simd* simd = nullptr;

#if defined(__x86_64__)
namespace avx2 {
const Simd* make_table();
}
namespace avx512 {
const Simd* make_table();
}

const char* choose_simd() {
  __builtin_cpu_init();
  bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!has_avx2) return "this processor has no AVX2, FMA and F16C, which the CPU kernels are compiled for";
  const char* wanted = std::getenv("PERIGEE_CPU_ISA");
  bool lesser = wanted != nullptr && std::strcmp(wanted, "avx2") == 0;
  simd = has_avx512 && !lesser ? avx512::make_table() : avx2::make_table();
  return nullptr;
}
#else
namespace generic {
const Simd* make_table();
}

const char* choose_simd() {
  simd = generic::make_table();
  return nullptr;
}
#endif

}  // namespace cpu
