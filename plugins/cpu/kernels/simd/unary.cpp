// SPDX-License-Identifier: Apache-2.0
// Blocks of one-operand functions, predicates and slopes.
#include "loop.hpp"
#include "perigee/kernels/math.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

template <class Op, class T, class R>
void plain_unary(const void* x, void* out, int64_t n, const void* params) {
  const T* a = static_cast<const T*>(x);
  R* o = static_cast<R*>(out);
  const Params<T> with(params);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) o[i] = static_cast<R>(Op()(a[i], with.p));
}
template <class Op, class T, class R>
void unary(const void* x, void* out, int64_t n, const void* params) {
  if constexpr (HasCommon<Op, T>) {
    for (int64_t i = 0, m = 0; i < n; i += m) {
      m = n - i < kCommonPiece ? n - i : kCommonPiece;
      const T* a = static_cast<const T*>(x) + i;
      R* o = static_cast<R*>(out) + i;
      int rare = 0;
      PG_LOOP
      for (int64_t k = 0; k < m; k++) rare |= Op::rare(a[k]);
      rare != 0 ? plain_unary<Op, T, R>(a, o, m, params) : plain_unary<typename Op::Common, T, R>(a, o, m, params);
    }
  } else {
    plain_unary<Op, T, R>(x, out, n, params);
  }
}

template <class Op, class T>
void slope(const void* x, const void* d, void* out, int64_t n, const void* params) {
  const T *a = static_cast<const T*>(x), *b = static_cast<const T*>(d);
  T* o = static_cast<T*>(out);
  const Params<T> with(params);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) o[i] = Op()(a[i], b[i], with.p);
}
template <class Op>
void slopes(SlopeFn* row) {
  row[kF32] = slope<Op, float>;
  row[kF64] = slope<Op, double>;
}

template <class Op>
void floats(UnaryFn* row) {
  row[kF32] = unary<Op, float, float>;
  row[kF64] = unary<Op, double, double>;
}
template <class Op>
void integers(UnaryFn* row) {
  row[kI64] = unary<Op, int64_t, int64_t>;
  row[kI32] = unary<Op, int32_t, int32_t>;
}
template <class Op>
void same(UnaryFn* row) {
  floats<Op>(row);
  integers<Op>(row);
}
template <class Op>
void predicate(UnaryFn* row) {
  row[kF32] = unary<Op, float, uint8_t>;
  row[kF64] = unary<Op, double, uint8_t>;
  row[kI64] = unary<Op, int64_t, uint8_t>;
  row[kI32] = unary<Op, int32_t, uint8_t>;
}

}  // namespace

void fill_unary(Simd& table) {
#define PG_ROW(name, Op) same<pg::math::Op>(table.unary[u##Op]);
  PG_MATH_UNARY(PG_ROW)
#undef PG_ROW
#define PG_ROW(name, Op) floats<pg::math::Op>(table.unary[u##Op]);
  PG_MATH_UNARY_FLOAT(PG_ROW)
#undef PG_ROW
#define PG_ROW(name, Op) integers<pg::math::Op>(table.unary[u##Op]);
  PG_MATH_UNARY_INT(PG_ROW)
#undef PG_ROW
#define PG_ROW(name, Op) slopes<pg::math::Op>(table.slope[g##Op]);
  PG_MATH_SLOPE(PG_ROW)
  PG_MATH_GELU_SLOPE(PG_ROW)
#undef PG_ROW
#define PG_ROW(name, Op) predicate<pg::math::Op>(table.unary[u##Op]);
  PG_MATH_PREDICATE(PG_ROW)
#undef PG_ROW
}

}  // namespace cpu::PG_CPU_ISA
