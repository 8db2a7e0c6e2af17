// SPDX-License-Identifier: Apache-2.0
// Loops compiled for two instruction sets, the better one taken at run time: with less than AVX2 the plugin does not
// load (CPU_FEATURES). What the body calls must be inlined into it (PG_INLINE), or it stays compiled for the baseline.
#pragma once

#include "perigee/plugin.hpp"

#define PG_INLINE [[gnu::always_inline]] inline

namespace pg::cpu {

enum class Isa { kAvx2, kAvx512 };

inline Isa isa() {
  static const Isa best = [] {
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    return wide ? Isa::kAvx512 : Isa::kAvx2;
  }();
  return best;
}

template <class Body>
__attribute__((target("avx2,fma"))) void call_avx2(const Body& body, int64_t begin, int64_t end) {
  body(begin, end);
}
template <class Body>
__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma"))) void call_avx512(const Body& body, int64_t begin,
                                                                                        int64_t end) {
  body(begin, end);
}

// On this thread alone; the body is an always-inlined call operator.
template <class Body>
void call_vector(const Body& body, int64_t begin, int64_t end) {
  switch (isa()) {
    case Isa::kAvx512: return call_avx512(body, begin, end);
    default: return call_avx2(body, begin, end);
  }
}
// parallel_for with such a body.
template <class Body>
void vector_for(int64_t count, int64_t grain, const Body& body) {
  parallel_for(count, grain, [&body](int64_t begin, int64_t end) { call_vector(body, begin, end); });
}

}  // namespace pg::cpu
