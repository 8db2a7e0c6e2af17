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

template <class Op, class T>
void ternary(const void* a, const void* b, const void* c, void* out, int64_t n, const void* params) {
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b), *z = static_cast<const T*>(c);
  T* o = static_cast<T*>(out);
  T p = params == nullptr ? T(0) : *static_cast<const T*>(params);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) o[i] = Op()(x[i], y[i], z[i], &p);
}
// By what a primitive takes and gives; R: void stands for the type itself.
template <class Op, class T, class R>
BinaryFn two() {
  return binary<Op, T, std::conditional_t<std::is_void_v<R>, T, R>>;
}
template <class Op, int types, class R>
void fill(BinaryFn* row) {
  if constexpr ((types & pg::math::kOfFloats) != 0) row[kF32] = two<Op, float, R>(), row[kF64] = two<Op, double, R>();
  if constexpr ((types & pg::math::kWhole) != 0) row[kI64] = two<Op, int64_t, R>(), row[kI32] = two<Op, int32_t, R>();
}
template <class Op, int types>
void fill(TernaryFn* row) {
  row[kF32] = ternary<Op, float>, row[kF64] = ternary<Op, double>;
  if constexpr ((types & pg::math::kWhole) != 0) row[kI64] = ternary<Op, int64_t>, row[kI32] = ternary<Op, int32_t>;
}

// Of primitives of other forms nothing is instantiated.
template <class Op, pg::math::Form form, int types, pg::math::Result result>
void fill_operands(Simd& table, Primitive p) {
  if constexpr (form == pg::math::kBinary)
    fill<Op, types, std::conditional_t<result == pg::math::kTruth, uint8_t, void>>(table.binary[p]);
  if constexpr (form == pg::math::kTernary) fill<Op, types>(table.ternary[p]);
}

}  // namespace

void fill_binary(Simd& table) {
#define PG_ROW(number, Op, form, parameters, types, result, ...) \
  fill_operands<pg::math::Op, pg::math::form, pg::math::types, pg::math::result>(table, p##Op);
  PG_PRIMITIVES(PG_ROW)
#undef PG_ROW
#if defined(__AVX2__)
  streamed<AddLanes>(table.binary_stream[pAdd]);
  streamed<SubLanes>(table.binary_stream[pSub]);
  streamed<MulLanes>(table.binary_stream[pMul]);
#endif
}

}  // namespace cpu::PG_CPU_ISA
