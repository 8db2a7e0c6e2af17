// SPDX-License-Identifier: Apache-2.0
// Cheap operators of bfloat16 from memory to memory, where passing through blocks of float32 costs more than the
// operator: those that choose among their operands look at the bits alone, arithmetic widens and rounds in registers.
// Results are those of the float32 way, bit for bit (NaN comes out quiet).
#include "bf16.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

// The bits are signed numbers, which vectors can compare.
constexpr int16_t kMagnitude = 0x7fff, kInfinity = 0x7f80, kMinusInfinity = -0x80, kQuiet = 0x40;

[[gnu::always_inline]] inline bool is_nan(int16_t x) { return static_cast<int16_t>(x & kMagnitude) > kInfinity; }
[[gnu::always_inline]] inline int16_t quiet(int16_t x) {
  return static_cast<int16_t>(x | (is_nan(x) ? kQuiet : int16_t{0}));
}
// All ones where the condition holds: conditions that are joined as bool are not vectorised.
[[gnu::always_inline]] inline int mask(bool condition) { return condition ? -1 : 0; }
// a where it is ahead of b by the order of their keys, or NaN; b where that alone is NaN.
[[gnu::always_inline]] inline int16_t first(int16_t a, int16_t b, int16_t key_a, int16_t key_b) {
  const int take = mask(is_nan(a)) | (mask(key_a > key_b) & ~mask(is_nan(b)));
  return quiet(static_cast<int16_t>((a & take) | (b & ~take)));
}
// Numbers have the order of their keys, both zeros the same.
[[gnu::always_inline]] inline int16_t key(int16_t x) {
  const int sign = x >> 15;
  return static_cast<int16_t>(((x & kMagnitude) ^ sign) - sign);
}

struct ReluBits {
  [[gnu::always_inline]] int16_t operator()(int16_t x) const {
    const bool negative = (x > INT16_MIN) & (x <= kMinusInfinity);  // neither -0 nor NaN
    return negative ? int16_t{0} : quiet(x);
  }
};
struct AbsBits {
  [[gnu::always_inline]] int16_t operator()(int16_t x) const { return quiet(static_cast<int16_t>(x & kMagnitude)); }
};
struct NegBits {
  [[gnu::always_inline]] int16_t operator()(int16_t x) const { return quiet(static_cast<int16_t>(x ^ INT16_MIN)); }
};
struct MaximumBits {
  [[gnu::always_inline]] int16_t operator()(int16_t a, int16_t b) const { return first(a, b, key(a), key(b)); }
};
struct MinimumBits {
  [[gnu::always_inline]] int16_t operator()(int16_t a, int16_t b) const { return first(a, b, key(b), key(a)); }
};
struct CopysignBits {
  [[gnu::always_inline]] int16_t operator()(int16_t a, int16_t b) const {
    return quiet(static_cast<int16_t>((a & kMagnitude) | (b & INT16_MIN)));
  }
};
struct ReluGradBits {
  [[gnu::always_inline]] int16_t operator()(int16_t y, int16_t d) const {
    return (y > 0) & (y <= kInfinity) ? quiet(d) : int16_t{0};
  }
};

template <class Op>
void unary_bits(const void* x, void* out, int64_t n, const void*) {
  const int16_t* a = static_cast<const int16_t*>(x);
  int16_t* o = static_cast<int16_t*>(out);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) o[i] = Op()(a[i]);
}
template <class Op>
void binary_bits(const void* x, const void* y, void* out, int64_t n) {
  const int16_t *a = static_cast<const int16_t*>(x), *b = static_cast<const int16_t*>(y);
  int16_t* o = static_cast<int16_t*>(out);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) o[i] = Op()(a[i], b[i]);
}
template <class Op>
void slope_bits(const void* x, const void* d, void* out, int64_t n, const void*) {
  binary_bits<Op>(x, d, out, n);
}

#if defined(__AVX2__)
// An operator of math.hpp, of whose `inputs` a piece at a time is widened.
template <int inputs, class Fn>
[[gnu::always_inline]] inline void by_pieces(const void* const (&in)[inputs], void* out, int64_t n, const Fn& fn) {
  alignas(64) float x[inputs][kPairLanes];
  const pg::bf16* from[inputs];
  for (int j = 0; j < inputs; j++) from[j] = static_cast<const pg::bf16*>(in[j]);
  pg::bf16* o = static_cast<pg::bf16*>(out);
  int64_t i = 0;
  for (; i + kPairLanes <= n; i += kPairLanes) {
    for (int j = 0; j < inputs; j++) {
      FloatPair wide = widened_pair(from[j] + i);
      store_vector(x[j], wide.low), store_vector(x[j] + kVectorLanes<float>, wide.high);
    }
    PG_LOOP
    for (int64_t k = 0; k < kPairLanes; k++) x[0][k] = fn(x, k);
    store_narrowed(o + i, {load_vector(x[0]), load_vector(x[0] + kVectorLanes<float>)});
  }
  for (; i < n; i++) {
    for (int j = 0; j < inputs; j++) x[j][0] = pg::to_float(from[j][i]);
    o[i] = pg::to_bf16(fn(x, 0));
  }
}
template <class Op>
void unary_pieces(const void* x, void* out, int64_t n, const void* params) {
  const Params<float> with(params);
  by_pieces<1>({x}, out, n, [&](const auto& in, int64_t k) { return Op()(in[0][k], with.p); });
}
template <class Op>
void slope_pieces(const void* x, const void* d, void* out, int64_t n, const void* params) {
  const Params<float> with(params);
  by_pieces<2>({x, d}, out, n, [&](const auto& in, int64_t k) { return Op()(in[0][k], in[1][k], with.p); });
}
template <class Op>
void ternary_pieces(const void* a, const void* b, const void* c, void* out, int64_t n, const void* params) {
  const Params<float> with(params);
  by_pieces<3>({a, b, c}, out, n,
               [&](const auto& in, int64_t k) { return Op()(in[0][k], in[1][k], in[2][k], with.p); });
}

template <class Op>
void binary_lanes(const void* x, const void* y, void* out, int64_t n) {
  const pg::bf16 *a = static_cast<const pg::bf16*>(x), *b = static_cast<const pg::bf16*>(y);
  pg::bf16* o = static_cast<pg::bf16*>(out);
  int64_t i = 0;
  for (; i + kPairLanes <= n; i += kPairLanes) {
    FloatPair p = widened_pair(a + i), q = widened_pair(b + i);
    store_narrowed(o + i, {Op()(p.low, q.low), Op()(p.high, q.high)});
  }
  PG_LOOP
  for (int64_t k = i; k < n; k++) o[k] = pg::to_bf16(Op()(pg::to_float(a[k]), pg::to_float(b[k])));
}
#endif

}  // namespace

void fill_bf16(Simd& table) {
  table.unary_bf16[pRelu] = unary_bits<ReluBits>;
  table.unary_bf16[pAbs] = unary_bits<AbsBits>;
  table.unary_bf16[pNeg] = unary_bits<NegBits>;
  table.binary_bf16[pMaximum] = binary_bits<MaximumBits>;
  table.binary_bf16[pMinimum] = binary_bits<MinimumBits>;
  table.binary_bf16[pCopysign] = binary_bits<CopysignBits>;
  table.slope_bf16[pReluGrad] = slope_bits<ReluGradBits>;
#if defined(__AVX2__)
  table.binary_bf16[pAdd] = binary_lanes<AddLanes>;
  table.binary_bf16[pSub] = binary_lanes<SubLanes>;
  table.binary_bf16[pMul] = binary_lanes<MulLanes>;
  table.binary_bf16[pDiv] = binary_lanes<DivLanes>;
  table.unary_bf16[pClamp] = unary_pieces<pg::math::Clamp>;
  table.slope_bf16[pLeakyReluGrad] = slope_pieces<pg::math::LeakyReluGrad>;
  table.ternary_bf16[pAddcmul] = ternary_pieces<pg::math::Addcmul>;
  table.ternary_bf16[pLerp] = ternary_pieces<pg::math::Lerp>;
  table.ternary_bf16[pAddcdiv] = ternary_pieces<pg::math::Addcdiv>;
#endif
}

}  // namespace cpu::PG_CPU_ISA
