// SPDX-License-Identifier: Apache-2.0
#include "linalg/microkernel.hpp"

#include "linalg/isa.hpp"

namespace pg::cpu {
namespace {

constexpr int kAhead = 512;  // bytes of b that are asked for before they are needed

// Two vectors of `Bytes` for each of `Rows` rows, of the `Panel` that a's panels have.
template <class A, int Bytes, int Rows, int Panel>
PG_INLINE void multiply(const Tile<A>& t) {
  typedef A Vector __attribute__((vector_size(Bytes), aligned(sizeof(A)), may_alias));
  constexpr int64_t lanes = Bytes / static_cast<int64_t>(sizeof(A)), columns = 2 * lanes;
  Vector sum[Rows][2];
#pragma GCC unroll 12
  for (int i = 0; i < Rows; i++) sum[i][0] = sum[i][1] = Vector{};
  const A *a = t.a, *b = t.b;
#pragma GCC unroll 4
  for (int64_t p = 0; p < t.depth; p++, a += Panel, b += columns) {
    Vector left = *reinterpret_cast<const Vector*>(b), right = *reinterpret_cast<const Vector*>(b + lanes);
    for (int64_t line = 0; line < 2 * Bytes; line += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(b) + kAhead + line);
#pragma GCC unroll 12
    for (int i = 0; i < Rows; i++) {
      sum[i][0] += a[i] * left;
      sum[i][1] += a[i] * right;
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < Rows; i++) {
    auto* to = reinterpret_cast<Vector*>(t.c + i * t.step);
    auto* next = reinterpret_cast<Vector*>(t.c + i * t.step + lanes);
    if (t.first != nullptr) {
      sum[i][0] += *reinterpret_cast<const Vector*>(t.first);
      sum[i][1] += *reinterpret_cast<const Vector*>(t.first + lanes);
    }
    if (t.add) sum[i][0] += *to, sum[i][1] += *next;
    *to = sum[i][0], *next = sum[i][1];
  }
}

template <class A, int Rows>
__attribute__((target("avx2,fma"))) void multiply_avx2(const Tile<A>& tile) {
  multiply<A, 32, Rows, 6>(tile);
}
template <class A, int Rows>
__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma"))) void multiply_avx512(const Tile<A>& tile) {
  multiply<A, 64, Rows, 12>(tile);
}

template <class A>
constexpr Microkernel<A> kAvx2{6, 64 / sizeof(A), {multiply_avx2<A, 2>, multiply_avx2<A, 4>, multiply_avx2<A, 6>}};
template <class A>
constexpr Microkernel<A> kAvx512{
    12, 128 / sizeof(A), {multiply_avx512<A, 4>, multiply_avx512<A, 8>, multiply_avx512<A, 12>}};

}  // namespace

template <class A>
const Microkernel<A>& microkernel() {
  return isa() == Isa::kAvx512 ? kAvx512<A> : kAvx2<A>;
}

template const Microkernel<float>& microkernel();
template const Microkernel<double>& microkernel();
template const Microkernel<uint32_t>& microkernel();
template const Microkernel<uint64_t>& microkernel();

}  // namespace pg::cpu
