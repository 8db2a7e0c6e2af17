// SPDX-License-Identifier: Apache-2.0
// Blocks of losses: what elements cost, the sum of it, and slopes.
#include "perigee/kernels/losses.hpp"
#include "loop.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

constexpr int64_t kLanes = 64, kPiece = 512;

template <class Op, class T>
void costs(const void* x, const void* y, const void* a, void* out, int64_t n, const void* params) {
  const T *u = static_cast<const T*>(x), *v = static_cast<const T*>(y), *w = static_cast<const T*>(a);
  T* o = static_cast<T*>(out);
  const Params<T> with(params);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) o[i] = Op::value(u[i], v[i], w[i], with.p);
}

// Lanes add up in T within a piece, pieces in double, in an order that n alone decides.
template <class Op, class T>
double sum(const void* x, const void* y, const void* a, int64_t n, const void* params) {
  const T *u = static_cast<const T*>(x), *v = static_cast<const T*>(y), *w = static_cast<const T*>(a);
  alignas(64) T cost[kPiece];
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    int64_t m = n - begin < kPiece ? n - begin : kPiece;
    costs<Op, T>(u + begin, v + begin, w + begin, cost, m, params);
    for (int64_t i = m; i % kLanes != 0; i++) cost[i] = T(0);
    alignas(64) T lane[kLanes];
    for (int64_t j = 0; j < kLanes; j++) lane[j] = cost[j];
    for (int64_t i = kLanes; i < m; i += kLanes) {
      for (int64_t j = 0; j < kLanes; j++) lane[j] += cost[i + j];
    }
    for (int64_t half = kLanes / 2; half > 0; half /= 2) {
      for (int64_t j = 0; j < half; j++) lane[j] += lane[j + half];
    }
    total += static_cast<double>(lane[0]);
  }
  return total;
}

template <class Op, class T>
void slopes(const void* x, const void* y, const void* a, void* out, int64_t n, double scale, const void* params) {
  const T *u = static_cast<const T*>(x), *v = static_cast<const T*>(y), *w = static_cast<const T*>(a);
  T *o = static_cast<T*>(out), by = static_cast<T>(scale);
  const Params<T> with(params);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) o[i] = Op::slope(u[i], v[i], w[i], with.p) * by;
}

template <class Op>
void fill(Simd& table, LossOp op) {
  table.loss[op][kF32] = costs<Op, float>;
  table.loss[op][kF64] = costs<Op, double>;
  table.loss_sum[op][kF32] = sum<Op, float>;
  table.loss_sum[op][kF64] = sum<Op, double>;
  table.loss_slope[op][kF32] = slopes<Op, float>;
  table.loss_slope[op][kF64] = slopes<Op, double>;
}

}  // namespace

void fill_losses(Simd& table) {
#define PG_ROW(name, ...) fill<pg::math::__VA_ARGS__>(table, l##name);
  PG_MATH_LOSS(PG_ROW)
#undef PG_ROW
}

}  // namespace cpu::PG_CPU_ISA
