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
// By what a primitive takes and gives; R: void stands for the type itself.
template <class Op, class T, class R>
UnaryFn loop_of() {
  return unary<Op, T, std::conditional_t<std::is_void_v<R>, T, R>>;
}
template <class Op, int types, class R>
void fill(UnaryFn* row) {
  if constexpr ((types & pg::math::kOfFloats) != 0)
    row[kF32] = loop_of<Op, float, R>(), row[kF64] = loop_of<Op, double, R>();
  if constexpr ((types & pg::math::kWhole) != 0)
    row[kI64] = loop_of<Op, int64_t, R>(), row[kI32] = loop_of<Op, int32_t, R>();
}

// Of primitives of other forms nothing is instantiated.
template <class Op, pg::math::Form form, int types, pg::math::Result result>
void fill_primitive(Simd& table, Primitive p) {
  if constexpr (form == pg::math::kUnary)
    fill<Op, types, std::conditional_t<result == pg::math::kTruth, uint8_t, void>>(table.unary[p]);
  if constexpr (form == pg::math::kSlope)
    table.slope[p][kF32] = slope<Op, float>, table.slope[p][kF64] = slope<Op, double>;
}

}  // namespace

void fill_unary(Simd& table) {
#define PG_ROW(number, Op, form, parameters, types, result, ...) \
  fill_primitive<pg::math::Op, pg::math::form, pg::math::types, pg::math::result>(table, p##Op);
  PG_PRIMITIVES(PG_ROW)
#undef PG_ROW
}

}  // namespace cpu::PG_CPU_ISA
