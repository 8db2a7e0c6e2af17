// SPDX-License-Identifier: Apache-2.0
// The steps of threaded vector code (threaded.hpp). A step is a loop over an array of one tile, which the compiler
// keeps in the registers that it came in; it ends in a jump to the next.
#include "../../threaded.hpp"

#include "bf16.hpp"
#include "perigee/kernels/math.hpp"
#include "perigee/kernels/primitives.hpp"

namespace cpu::PG_CPU_ISA {

// What the arguments of a step are: all vector registers that calls pass.
#if defined(__AVX512F__)
#define PG_EACH(X) X(0) X(1) X(2) X(3)
#define PG_TILE V v0, V v1, V v2, V v3
#define PG_PASS v0, v1, v2, v3
#else
#define PG_EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define PG_TILE V v0, V v1, V v2, V v3, V v4, V v5, V v6, V v7
#define PG_PASS v0, v1, v2, v3, v4, v5, v6, v7
#endif

namespace {

typedef float V __attribute__((vector_size(kVectorBytes)));
typedef float Loose __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
using Run = void (*)(const TileStep*, TileFrame*, PG_TILE);

#define PG_ONE(i) +1
constexpr int64_t kTileBytes = (0 PG_EACH(PG_ONE)) * kVectorBytes;
#undef PG_ONE
static_assert(kTileBytes <= kTileMost);

#if defined(__AVX512F__)
#define PG_PAIRS(X) X(0, 1) X(2, 3)
#else
#define PG_PAIRS(X) X(0, 1) X(2, 3) X(4, 5) X(6, 7)
#endif

template <class T>
constexpr int64_t kCount = kTileBytes / static_cast<int64_t>(sizeof(T));

// The accumulator as an array, and back.
#define PG_SPREAD(i) *reinterpret_cast<Loose*>(reinterpret_cast<char*>(x) + (i)*kVectorBytes) = v##i;
#define PG_GATHER(i) v##i = *reinterpret_cast<const Loose*>(reinterpret_cast<const char*>(x) + (i)*kVectorBytes);
#if defined(__AVX512F__)
#define PG_STREAM(i) _mm512_stream_ps(reinterpret_cast<float*>(x + (i)*kVectorBytes), (__m512)v##i);
#else
#define PG_STREAM(i) _mm256_stream_ps(reinterpret_cast<float*>(x + (i)*kVectorBytes), (__m256)v##i);
#endif
#define PG_NEXT return reinterpret_cast<Run>(step[1].run)(step + 1, frame, PG_PASS)

template <class T>
[[gnu::always_inline]] inline T* place(const TileFrame* frame, uint16_t operand) {
  const TileOperand& o = frame->operand[operand];
  return reinterpret_cast<T*>(o.at + frame->index * o.step);
}

template <class T>
TileHandler handler(T run) {
  return reinterpret_cast<TileHandler>(static_cast<Run>(run));
}

// ---- to and from memory ----

template <class W, class S>
[[gnu::always_inline]] inline void widen_to(const S* from, W* x) {
  constexpr int64_t n = kCount<W>;
  if constexpr (__is_same(S, pg::bf16)) {
#if defined(__AVX2__)
#pragma GCC unroll 8
    for (int64_t k = 0; k < n; k += kVectorLanes<float>) store_vector(x + k, widened(from + k));
#else
    for (int64_t k = 0; k < n; k++) x[k] = pg::to_float(from[k]);
#endif
  } else if constexpr (__is_same(S, pg::f16)) {
#if defined(__F16C__)
#pragma GCC unroll 8
    for (int64_t k = 0; k < n; k += 8)
      _mm256_storeu_ps(x + k, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k))));
#else
    for (int64_t k = 0; k < n; k++) x[k] = pg::to_float(from[k]);
#endif
  } else {
    PG_LOOP
    for (int64_t k = 0; k < n; k++) x[k] = static_cast<W>(from[k]);
  }
}

template <class W, class S>
[[gnu::always_inline]] inline void narrow_to(const W* x, S* to) {
  constexpr int64_t n = kCount<W>;
  if constexpr (__is_same(S, pg::bf16)) {
#if defined(__AVX2__)
#pragma GCC unroll 8
    for (int64_t k = 0; k < n; k += kPairLanes)
      store_narrowed(to + k, {load_vector(x + k), load_vector(x + k + kVectorLanes<float>)});
#else
    for (int64_t k = 0; k < n; k++) to[k] = pg::to_bf16(x[k]);
#endif
  } else if constexpr (__is_same(S, pg::f16)) {
#if defined(__F16C__)
#pragma GCC unroll 8
    for (int64_t k = 0; k < n; k += 8) {
      __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(x + k), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + k), half);
    }
#else
    for (int64_t k = 0; k < n; k++) to[k] = pg::to_f16(x[k]);
#endif
  } else if constexpr (__is_same(S, bool)) {
    uint8_t* bytes = reinterpret_cast<uint8_t*>(to);
    PG_LOOP
    for (int64_t k = 0; k < n; k++) bytes[k] = x[k] != 0;
  } else {
    PG_LOOP
    for (int64_t k = 0; k < n; k++) to[k] = static_cast<S>(x[k]);
  }
}

template <class W, class S>
void load(const TileStep* step, TileFrame* frame, PG_TILE) {
  if constexpr (__is_same(W, S)) {
    const char* x = place<const char>(frame, step->a);
    // Where memory is slow a tile is over before the processor looks beyond the next one.
    for (int64_t ahead = 4 * kTileBytes; ahead < 5 * kTileBytes; ahead += 64) __builtin_prefetch(x + ahead);
    PG_EACH(PG_GATHER)
    PG_NEXT;
  }
  alignas(64) W x[kCount<W>];
  widen_to(place<const S>(frame, step->a), x);
  PG_EACH(PG_GATHER)
  PG_NEXT;
}
template <class W, class S>
void widen(const TileStep* step, TileFrame* frame, PG_TILE) {
  widen_to(place<const S>(frame, step->b), place<W>(frame, step->a));
  PG_NEXT;
}
void keep(const TileStep* step, TileFrame* frame, PG_TILE) {
  char* x = place<char>(frame, step->a);
  PG_EACH(PG_SPREAD)
  PG_NEXT;
}
template <class W, class S>
void store(const TileStep* step, TileFrame* frame, PG_TILE) {
  if constexpr (__is_same(W, S)) return keep(step, frame, PG_PASS);
  alignas(64) W x[kCount<W>];
  PG_EACH(PG_SPREAD)
  narrow_to(x, place<S>(frame, step->a));
  PG_NEXT;
}
// Past the caches, where the tile lies on their lines.
template <class W, class S>
void store_past(const TileStep* step, TileFrame* frame, PG_TILE) {
  S* to = place<S>(frame, step->a);
#if defined(__AVX2__)
  if constexpr (__is_same(W, S)) {
    if (reinterpret_cast<uintptr_t>(to) % kVectorBytes != 0) return keep(step, frame, PG_PASS);
    char* x = reinterpret_cast<char*>(to);
    PG_EACH(PG_STREAM)
    PG_NEXT;
  }
#endif
  alignas(64) W x[kCount<W>];
  PG_EACH(PG_SPREAD)
#if defined(__AVX2__)
  if (reinterpret_cast<uintptr_t>(to) % 32 == 0) {
    alignas(64) S narrow[kCount<W>];
    narrow_to(x, narrow);
#pragma GCC unroll 16
    for (int64_t k = 0; k < kCount<W>; k += static_cast<int64_t>(32 / sizeof(S)))
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + k), *reinterpret_cast<const __m256i*>(narrow + k));
    PG_NEXT;
  }
#endif
  narrow_to(x, to);
  PG_NEXT;
}

// What the storage type holds of a word.
template <class W, class S>
void round(const TileStep* step, TileFrame* frame, PG_TILE) {
  alignas(64) W x[kCount<W>];
  PG_EACH(PG_SPREAD)
  if constexpr (__is_same(S, pg::bf16)) {
#if defined(__AVX2__)
#pragma GCC unroll 8
    for (int64_t k = 0; k < kCount<W>; k += kVectorLanes<float>)
      store_vector(x + k, (Vector<float>)(rounded_or_nan(load_vector(x + k)) & 0xffff0000u));
#else
    for (int64_t k = 0; k < kCount<W>; k++) x[k] = pg::to_float(pg::to_bf16(x[k]));
#endif
  } else if constexpr (__is_same(S, pg::f16)) {
    alignas(64) S narrow[kCount<W>];
    narrow_to(x, narrow);
    widen_to(narrow, x);
  } else {
    PG_LOOP
    for (int64_t k = 0; k < kCount<W>; k++) x[k] = static_cast<W>(static_cast<S>(x[k]));
  }
  PG_EACH(PG_GATHER)
  PG_NEXT;
}

#if defined(__AVX2__)
// To bfloat16 a register at a time, where nothing is NaN: rounding is half as long then.
void round_bf16(const TileStep* step, TileFrame* frame, PG_TILE) {
#if defined(__AVX512F__)
  __mmask16 unordered = 0;
#define PG_NAN(i, j) unordered |= _mm512_cmp_ps_mask((__m512)v##i, (__m512)v##j, _CMP_UNORD_Q);
  PG_PAIRS(PG_NAN)
  const bool nan = unordered != 0;
#else
  __m256 unordered = _mm256_setzero_ps();
#define PG_NAN(i, j) unordered = _mm256_or_ps(unordered, _mm256_cmp_ps((__m256)v##i, (__m256)v##j, _CMP_UNORD_Q));
  PG_PAIRS(PG_NAN)
  const bool nan = _mm256_movemask_ps(unordered) != 0;
#endif
#undef PG_NAN
  if (__builtin_expect(nan, 0)) return round<float, pg::bf16>(step, frame, PG_PASS);
#define PG_ROUND(i) v##i = (V)(rounded((Vector<float>)v##i) & 0xffff0000u);
  PG_EACH(PG_ROUND)
#undef PG_ROUND
  PG_NEXT;
}
#endif

// To a type of the same width: the nearest number, or whether it is not 0.
template <class From, class To, bool truth>
void convert(const TileStep* step, TileFrame* frame, PG_TILE) {
  alignas(64) From x[kCount<From>];
  PG_EACH(PG_SPREAD)
  alignas(64) To y[kCount<To>];
  PG_LOOP
  for (int64_t k = 0; k < kCount<From>; k++) y[k] = truth ? x[k] != From(0) : static_cast<To>(x[k]);
  {
    const To* x = y;
    PG_EACH(PG_GATHER)
  }
  PG_NEXT;
}

// ---- primitives ----

template <class T>
using Whole = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

using namespace pg::math;

// body(x, a, b, p, k) is element k of the result, of type R.
template <class T, class R, class Body>
[[gnu::always_inline]] inline void compute(const TileStep* step, const TileFrame* frame, const T* x, R* y,
                                           const Body& body, bool second, bool third) {
  const T* a = second ? place<const T>(frame, step->a) : nullptr;
  const T* b = third ? place<const T>(frame, step->b) : nullptr;
  T p[kMaxParameters];
  __builtin_memcpy(p, frame->parameters + step->parameter, sizeof p);
  PG_LOOP
  for (int64_t k = 0; k < kCount<T>; k++) y[k] = body(x[k], a, b, p, k);
}

template <class Op, class T, class R, Form form, bool reverse>
void cheap(const TileStep* step, TileFrame* frame, PG_TILE) {
  alignas(64) T x[kCount<T>];
  PG_EACH(PG_SPREAD)
  alignas(64) R y[kCount<R>];
  auto body = [](T e, const T* a, const T* b, const T* p, int64_t k) -> R {
    if constexpr (form == kUnary) return static_cast<R>(Op()(e, p));
    if constexpr (form == kBinary) return static_cast<R>(reverse ? Op()(a[k], e) : Op()(e, a[k]));
    if constexpr (form == kSlope) return static_cast<R>(reverse ? Op()(a[k], e, p) : Op()(e, a[k], p));
    if constexpr (form == kTernary) return static_cast<R>(Op()(e, a[k], b[k], p));
  };
  compute(step, frame, x, y, body, form != kUnary, form == kTernary);
  {
    const R* x = y;
    PG_EACH(PG_GATHER)
  }
  PG_NEXT;
}

#if defined(__AVX2__)
// Maximum and minimum of floats a register at a time. Of a loop the compiler makes comparisons whose masks it puts down
// in memory; the processor's instruction answers the second operand where two do not compare, as the functors do.
template <class T, bool largest>
[[gnu::always_inline]] inline V further(V first, V second) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    const __m512 a = (__m512)first, b = (__m512)second;  // g++ 12 warns of the ones without a mask
    const __m512 far = largest ? _mm512_maskz_max_ps(0xffff, a, b) : _mm512_maskz_min_ps(0xffff, a, b);
    return (V)_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), far, a);
  } else {
    const __m512d a = (__m512d)first, b = (__m512d)second;
    const __m512d far = largest ? _mm512_maskz_max_pd(0xff, a, b) : _mm512_maskz_min_pd(0xff, a, b);
    return (V)_mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, a, _CMP_UNORD_Q), far, a);
  }
#else
  if constexpr (sizeof(T) == 4) {
    const __m256 a = (__m256)first, b = (__m256)second, far = largest ? _mm256_max_ps(a, b) : _mm256_min_ps(a, b);
    return (V)_mm256_blendv_ps(far, a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  } else {
    const __m256d a = (__m256d)first, b = (__m256d)second, far = largest ? _mm256_max_pd(a, b) : _mm256_min_pd(a, b);
    return (V)_mm256_blendv_pd(far, a, _mm256_cmp_pd(a, a, _CMP_UNORD_Q));
  }
#endif
}
template <class T, bool largest, bool reverse>
void extreme(const TileStep* step, TileFrame* frame, PG_TILE) {
  const char* x = place<const char>(frame, step->a);
#define PG_FURTHER(i)                                                             \
  {                                                                               \
    const V a = *reinterpret_cast<const Loose*>(x + (i)*kVectorBytes);            \
    v##i = reverse ? further<T, largest>(a, v##i) : further<T, largest>(v##i, a); \
  }
  PG_EACH(PG_FURTHER)
#undef PG_FURTHER
  PG_NEXT;
}
template <class T>
void fill_extremes(Threaded& t, Compute c) {
  t.primitive[pMaximum][c] = handler(extreme<T, true, false>);
  t.reversed[pMaximum][c] = handler(extreme<T, true, true>);
  t.primitive[pMinimum][c] = handler(extreme<T, false, false>);
  t.reversed[pMinimum][c] = handler(extreme<T, false, true>);
}
#endif

// Bits are moved: a where the accumulator is true, else b.
template <class W>
void choose(const TileStep* step, TileFrame* frame, PG_TILE) {
  alignas(64) W x[kCount<W>];
  PG_EACH(PG_SPREAD)
  const W *a = place<const W>(frame, step->a), *b = place<const W>(frame, step->b);
  PG_LOOP
  for (int64_t k = 0; k < kCount<W>; k++) {
    const W from_a = a[k], from_b = b[k];
    x[k] = x[k] != 0 ? from_a : from_b;
  }
  PG_EACH(PG_GATHER)
  PG_NEXT;
}

// Through the loop that computes the operator alone.
template <class T, class R, Form form, bool reverse>
void costly(const TileStep* step, TileFrame* frame, PG_TILE) {
  alignas(64) T x[kCount<T>];
  alignas(64) R y[kCount<T>];
  PG_EACH(PG_SPREAD)
  T p[kMaxParameters];
  __builtin_memcpy(p, frame->parameters + step->parameter, sizeof p);
  constexpr int64_t n = kCount<T>;
  if constexpr (form == kUnary) {
    reinterpret_cast<UnaryFn>(step->loop)(x, y, n, p);
  } else if constexpr (form == kTernary) {
    reinterpret_cast<TernaryFn>(step->loop)(x, place<const T>(frame, step->a), place<const T>(frame, step->b), y, n, p);
  } else {
    const T* a = place<const T>(frame, step->a);
    const T *first = reverse ? a : x, *second = reverse ? x : a;
    if constexpr (form == kBinary)
      reinterpret_cast<BinaryFn>(step->loop)(first, second, y, n);
    else
      reinterpret_cast<SlopeFn>(step->loop)(first, second, y, n, p);
  }
  if constexpr (__is_same(R, uint8_t)) {
    alignas(64) Whole<T> z[kCount<T>];
    PG_LOOP
    for (int64_t k = 0; k < n; k++) z[k] = y[k];
    const Whole<T>* x = z;
    PG_EACH(PG_GATHER)
  } else {
    const R* x = y;
    PG_EACH(PG_GATHER)
  }
  PG_NEXT;
}

#define PG_IGNORE(i) static_cast<void>(v##i);
void end(const TileStep*, TileFrame*, PG_TILE) { PG_EACH(PG_IGNORE) }
#undef PG_IGNORE

void run(const TileStep* program, TileFrame* frame, int64_t tiles, int64_t tile) {
#define PG_ZERO(i) V v##i = {};
  PG_EACH(PG_ZERO)
#undef PG_ZERO
  for (int64_t i = 0; i < tiles; i++) {
    frame->index = i * tile;
    reinterpret_cast<Run>(program->run)(program, frame, PG_PASS);
  }
}

// ---- the table ----

struct Select;  // it has no functor

template <class Op, class T, Form form, Result result, Cost cost>
void fill_type(Threaded& t, Primitive p, Compute c) {
  constexpr bool two = form == kBinary || form == kSlope;
  // These are loops of arithmetic alone: called for each tile they cost up to a third more.
  constexpr bool whole =
      cost == kCheap || std::is_same_v<Op, Exp> || std::is_same_v<Op, Sigmoid> || std::is_same_v<Op, Silu>;
  if constexpr (form == kChoice) {
  } else if constexpr (whole) {
    using R = std::conditional_t<result == kTruth, Whole<T>, T>;
    t.primitive[p][c] = handler(cheap<Op, T, R, form, false>);
    if constexpr (two) t.reversed[p][c] = handler(cheap<Op, T, R, form, true>);
  } else {
    using R = std::conditional_t<result == kTruth, uint8_t, T>;
    t.primitive[p][c] = handler(costly<T, R, form, false>);
    if constexpr (two) t.reversed[p][c] = handler(costly<T, R, form, true>);
  }
}
template <class Op, Form form, int types, Result result, Cost cost>
void fill_primitive(Threaded& t, Primitive p) {
  if constexpr ((types & kOfFloats) != 0) {
    fill_type<Op, float, form, result, cost>(t, p, kF32);
    fill_type<Op, double, form, result, cost>(t, p, kF64);
  }
  if constexpr ((types & kWhole) != 0) {
    fill_type<Op, int32_t, form, result, cost>(t, p, kI32);
    fill_type<Op, int64_t, form, result, cost>(t, p, kI64);
  }
}

template <class W, class S>
void fill_storage(Threaded& t, Storage s, int width) {
  t.load[s][width] = handler(load<W, S>);
  t.widen[s][width] = handler(widen<W, S>);
  t.store[s][width] = handler(store<W, S>);
  t.past[s][width] = handler(store_past<W, S>);
  if constexpr (!__is_same(W, S)) t.round[s][width] = handler(round<W, S>);
}

}  // namespace

const Threaded* make_threaded() {
  static Threaded t{};
  t.tile[0] = kCount<float>;
  t.tile[1] = kCount<double>;
  fill_storage<float, float>(t, sF32, 0);
  fill_storage<float, pg::f16>(t, sF16, 0);
  fill_storage<float, pg::bf16>(t, sBF16, 0);
  fill_storage<int32_t, int32_t>(t, sI32, 0);
  fill_storage<int32_t, int16_t>(t, sI16, 0);
  fill_storage<int32_t, int8_t>(t, sI8, 0);
  fill_storage<int32_t, uint8_t>(t, sU8, 0);
  fill_storage<int32_t, bool>(t, sBool, 0);
  fill_storage<double, double>(t, sF64, 1);
  fill_storage<int64_t, int64_t>(t, sI64, 1);
  fill_storage<int64_t, bool>(t, sBool, 1);
  t.keep = handler(keep);
  t.to_float[0] = handler(convert<int32_t, float, false>);
  t.to_float[1] = handler(convert<int64_t, double, false>);
  t.to_truth[0] = handler(convert<float, int32_t, true>);
  t.to_truth[1] = handler(convert<double, int64_t, true>);
  t.primitive[pSelect][kF32] = t.primitive[pSelect][kI32] = handler(choose<int32_t>);
  t.primitive[pSelect][kF64] = t.primitive[pSelect][kI64] = handler(choose<int64_t>);
#define PG_ROW(number, Op, form, parameters, types, result, cost, ...) \
  fill_primitive<Op, form, types, result, cost>(t, p##Op);
  PG_PRIMITIVES(PG_ROW)
#undef PG_ROW
#if defined(__AVX2__)
  fill_extremes<float>(t, kF32);
  fill_extremes<double>(t, kF64);
  t.round[sBF16][0] = handler(round_bf16);
#endif
  t.end = handler(end);
  t.run = run;
  return &t;
}

}  // namespace cpu::PG_CPU_ISA
