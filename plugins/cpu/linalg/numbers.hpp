// SPDX-License-Identifier: Apache-2.0
// Element types as the matrix products see them: how each is read, what it accumulates in, how the sum is written back.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "perigee/plugin.hpp"

namespace pg::cpu {

// Storage of the 16-bit floats. Plain bits: g++ 12 and clang 14 disagree about which native types they have.
struct BFloat16 {
  uint16_t bits;
};
struct Half {
  uint16_t bits;
};

inline float widen(BFloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

// Exact. Multiplying by 2^112 moves the exponent's bias and makes subnormals normal; infinities and NaN are patched.
inline float widen(Half x) {
  uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16, magnitude = static_cast<uint32_t>(x.bits & 0x7fffu)
                                                                             << 13;
  uint32_t value = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  value |= magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  return std::bit_cast<float>(value | sign);
}

inline BFloat16 narrow_bfloat16(float x) {  // to nearest, ties to even
  uint32_t bits = std::bit_cast<uint32_t>(x);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  uint32_t quiet = (bits >> 16) | 0x40u;
  return {static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded)};
}

inline Half narrow_half(float x) {  // to nearest, ties to even
  uint32_t bits = std::bit_cast<uint32_t>(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u)};
  if (magnitude >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // 65520 and more
  if (magnitude < 0x38800000u) {  // subnormal: adding 0.5 leaves the result, rounded, in the low bits
    float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u))};
  }
  uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u;
  return {static_cast<uint16_t>(sign | (rounded >> 13))};
}

// The type sums are kept in. Unsigned for integers: overflow wraps around, as it does in the result.
template <class T>
struct AccumulatorOf {
  using type = std::conditional_t<std::is_integral_v<T>, std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>, T>;
};
template <>
struct AccumulatorOf<BFloat16> {
  using type = float;
};
template <>
struct AccumulatorOf<Half> {
  using type = float;
};
template <class T>
using Accumulator = typename AccumulatorOf<T>::type;

template <class T>
inline Accumulator<T> load(T x) {
  if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Half>) {
    return widen(x);
  } else {
    return static_cast<Accumulator<T>>(x);
  }
}

template <class T>
inline T store(Accumulator<T> x) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return narrow_bfloat16(x);
  } else if constexpr (std::is_same_v<T, Half>) {
    return narrow_half(x);
  } else {
    return static_cast<T>(x);  // integers wrap around
  }
}

template <class T>
struct Type {
  using type = T;
};

// Calls body(Type<T>{}) with the storage type of a float dtype.
template <class Body>
auto with_float(uint32_t dtype, Body&& body) {
  switch (dtype) {
    case PG_F32: return body(Type<float>{});
    case PG_F64: return body(Type<double>{});
    case PG_BF16: return body(Type<BFloat16>{});
    case PG_F16: return body(Type<Half>{});
    default: fail_support(format("dtype %s is not a real float", dtype_name(dtype)));
  }
}

// The same for all numbers but booleans and complex ones.
template <class Body>
auto with_number(uint32_t dtype, Body&& body) {
  switch (dtype) {
    case PG_I64: return body(Type<int64_t>{});
    case PG_I32: return body(Type<int32_t>{});
    case PG_I16: return body(Type<int16_t>{});
    case PG_I8: return body(Type<int8_t>{});
    case PG_U8: return body(Type<uint8_t>{});
    default: return with_float(dtype, body);
  }
}

}  // namespace pg::cpu
