// SPDX-License-Identifier: Apache-2.0
// Blocks of one-operand functions and predicates.
#include "loop.hpp"
#include "perigee/kernels/math.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

template <class Op, class T, class R>
void unary(const void* x, void* out, int64_t n, const void* params) {
  const T* a = static_cast<const T*>(x);
  R* o = static_cast<R*>(out);
  T p[2] = {};
  if (params != nullptr) p[0] = static_cast<const T*>(params)[0], p[1] = static_cast<const T*>(params)[1];
  PG_LOOP
  for (int64_t i = 0; i < n; i++) o[i] = static_cast<R>(Op()(a[i], p));
}

template <class Op>
void floats(UnaryFn* row) {
  row[kF32] = unary<Op, float, float>;
  row[kF64] = unary<Op, double, double>;
}
template <class Op>
void same(UnaryFn* row) {
  floats<Op>(row);
  row[kI64] = unary<Op, int64_t, int64_t>;
  row[kI32] = unary<Op, int32_t, int32_t>;
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
#define PG_ROW(name, Op) predicate<pg::math::Op>(table.unary[u##Op]);
  PG_MATH_PREDICATE(PG_ROW)
#undef PG_ROW
}

}  // namespace cpu::PG_CPU_ISA
