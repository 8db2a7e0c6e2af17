// SPDX-License-Identifier: Apache-2.0
// Loops compiled for three instruction sets, the best one taken at run time. What the body calls must be inlined into
// it (PG_INLINE), or it stays compiled for the baseline.
#pragma once

#include "perigee/plugin.hpp"

#define PG_INLINE [[gnu::always_inline]] inline

namespace pg::cpu {

enum class Isa { kBaseline, kAvx2, kAvx512 };

inline Isa isa() {
  static const Isa best = [] {
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (wide) return Isa::kAvx512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? Isa::kAvx2 : Isa::kBaseline;
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

// parallel_for whose body is an always-inlined call operator.
template <class Body>
void vector_for(int64_t count, int64_t grain, const Body& body) {
  parallel_for(count, grain, [&body](int64_t begin, int64_t end) {
    switch (isa()) {
      case Isa::kAvx512: return call_avx512(body, begin, end);
      case Isa::kAvx2: return call_avx2(body, begin, end);
      default: return body(begin, end);
    }
  });
}

}  // namespace pg::cpu
