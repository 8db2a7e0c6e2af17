// SPDX-License-Identifier: Apache-2.0
// Blocks of two- and three-operand arithmetic and comparisons.
#include "perigee/kernels/math.hpp"
#include "vector.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

template <class Op, class T, class R>
void plain_binary(const void* a, const void* b, void* out, int64_t n) {
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  R* o = static_cast<R*>(out);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) o[i] = static_cast<R>(Op()(x[i], y[i]));
}
template <class Op, class T, class R>
void binary(const void* a, const void* b, void* out, int64_t n) {
  if constexpr (HasCommon<Op, T>) {
    for (int64_t i = 0, m = 0; i < n; i += m) {
      m = n - i < kCommonPiece ? n - i : kCommonPiece;
      const T *x = static_cast<const T*>(a) + i, *y = static_cast<const T*>(b) + i;
      R* o = static_cast<R*>(out) + i;
      int rare = 0;
      PG_LOOP
      for (int64_t k = 0; k < m; k++) rare |= Op::rare(x[k], y[k]);
      rare != 0 ? plain_binary<Op, T, R>(x, y, o, m) : plain_binary<typename Op::Common, T, R>(x, y, o, m);
    }
  } else {
    plain_binary<Op, T, R>(a, b, out, n);
  }
}

#if defined(__AVX2__)
// Straight from registers, a cache line at a time: through a buffer, reading and writing memory overlap less.
template <class Op, class T>
void binary_stream(const void* a, const void* b, void* out, int64_t n) {
  typedef T Lanes __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));
  constexpr int64_t kHalf = 32 / sizeof(T), kLine = 2 * kHalf;
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  T* o = static_cast<T*>(out);
  auto lanes = [](const T* at) { return *reinterpret_cast<const Lanes*>(at); };
  int64_t i = 0;
  for (; i < n && reinterpret_cast<uintptr_t>(o + i) % 64 != 0; i++) o[i] = Op()(x[i], y[i]);
  for (; i + kLine <= n; i += kLine) {
    Lanes low = Op()(lanes(x + i), lanes(y + i)), high = Op()(lanes(x + i + kHalf), lanes(y + i + kHalf));
    auto* to = reinterpret_cast<__m256i*>(o + i);
    _mm256_stream_si256(to, reinterpret_cast<__m256i>(low));
    _mm256_stream_si256(to + 1, reinterpret_cast<__m256i>(high));
  }
  for (; i < n; i++) o[i] = Op()(x[i], y[i]);
}
template <class Op>
void streamed(BinaryFn* row) {
  row[kF32] = binary_stream<Op, float>;
  row[kF64] = binary_stream<Op, double>;
  row[kI64] = binary_stream<Op, uint64_t>;
  row[kI32] = binary_stream<Op, uint32_t>;
}
#endif

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
void integers(BinaryFn* row) {
  row[kI64] = binary<Op, int64_t, int64_t>;
  row[kI32] = binary<Op, int32_t, int32_t>;
}
template <class Op>
void compare(BinaryFn* row) {
  row[kF32] = binary<Op, float, uint8_t>;
  row[kF64] = binary<Op, double, uint8_t>;
  row[kI64] = binary<Op, int64_t, uint8_t>;
  row[kI32] = binary<Op, int32_t, uint8_t>;
}

template <class Op, class T>
void ternary(const void* a, const void* b, const void* c, void* out, int64_t n, const void* params) {
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b), *z = static_cast<const T*>(c);
  T* o = static_cast<T*>(out);
  T p = params == nullptr ? T(0) : *static_cast<const T*>(params);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) o[i] = Op()(x[i], y[i], z[i], &p);
}
template <class Op>
void three_floats(TernaryFn* row) {
  row[kF32] = ternary<Op, float>;
  row[kF64] = ternary<Op, double>;
}
template <class Op>
void three(TernaryFn* row) {
  three_floats<Op>(row);
  row[kI64] = ternary<Op, int64_t>;
  row[kI32] = ternary<Op, int32_t>;
}

}  // namespace

void fill_binary(Simd& table) {
#define PG_ROW(name, Op) same<pg::math::Op>(table.binary[b##Op]);
  PG_MATH_BINARY(PG_ROW)
#undef PG_ROW
#define PG_ROW(name, Op) floats<pg::math::Op>(table.binary[b##Op]);
  PG_MATH_BINARY_FLOAT(PG_ROW)
#undef PG_ROW
#define PG_ROW(name, Op) integers<pg::math::Op>(table.binary[b##Op]);
  PG_MATH_BINARY_INT(PG_ROW)
#undef PG_ROW
#define PG_ROW(name, Op) three<pg::math::Op>(table.ternary[t##Op]);
  PG_MATH_TERNARY(PG_ROW)
#undef PG_ROW
#define PG_ROW(name, Op) three_floats<pg::math::Op>(table.ternary[t##Op]);
  PG_MATH_TERNARY_FLOAT(PG_ROW)
#undef PG_ROW
#define PG_ROW(name, Op) compare<pg::math::Op>(table.binary[b##Op]);
  PG_MATH_COMPARE(PG_ROW)
#undef PG_ROW
#if defined(__AVX2__)
  streamed<AddLanes>(table.binary_stream[bAdd]);
  streamed<SubLanes>(table.binary_stream[bSub]);
  streamed<MulLanes>(table.binary_stream[bMul]);
#endif
}

}  // namespace cpu::PG_CPU_ISA
