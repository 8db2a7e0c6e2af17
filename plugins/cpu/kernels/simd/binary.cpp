// SPDX-License-Identifier: Apache-2.0
// Blocks of two-operand arithmetic and comparisons.
#include "loop.hpp"
#include "perigee/kernels/math.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

template <class Op, class T, class R>
void binary(const void* a, const void* b, void* out, int64_t n) {
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  R* o = static_cast<R*>(out);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) o[i] = static_cast<R>(Op()(x[i], y[i]));
}

template <class Op>
void same(BinaryFn* row) {
  row[kF32] = binary<Op, float, float>;
  row[kF64] = binary<Op, double, double>;
  row[kI64] = binary<Op, int64_t, int64_t>;
  row[kI32] = binary<Op, int32_t, int32_t>;
}
template <class Op>
void floats(BinaryFn* row) {
  row[kF32] = binary<Op, float, float>;
  row[kF64] = binary<Op, double, double>;
}
template <class Op>
void compare(BinaryFn* row) {
  row[kF32] = binary<Op, float, uint8_t>;
  row[kF64] = binary<Op, double, uint8_t>;
  row[kI64] = binary<Op, int64_t, uint8_t>;
  row[kI32] = binary<Op, int32_t, uint8_t>;
}

}  // namespace

void fill_binary(Simd& table) {
#define PG_ROW(name, Op) same<pg::math::Op>(table.binary[b##Op]);
  PG_MATH_BINARY(PG_ROW)
#undef PG_ROW
#define PG_ROW(name, Op) floats<pg::math::Op>(table.binary[b##Op]);
  PG_MATH_BINARY_FLOAT(PG_ROW)
#undef PG_ROW
#define PG_ROW(name, Op) compare<pg::math::Op>(table.binary[b##Op]);
  PG_MATH_COMPARE(PG_ROW)
#undef PG_ROW
}

}  // namespace cpu::PG_CPU_ISA
