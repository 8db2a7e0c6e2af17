// SPDX-License-Identifier: Apache-2.0
// Element types as the matrix products see them: how each is read, what it accumulates in, how the sum is written back.
#pragma once

#include <cstdint>
#include <type_traits>

#include "linalg/isa.hpp"
#include "perigee/kernels/float16.hpp"
#include "perigee/plugin.hpp"

namespace pg::cpu {

// Storage of the 16-bit floats. Plain bits: g++ 12 and clang 14 disagree about which native types they have.
using BFloat16 = bf16;
using Half = f16;

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
    return to_float(x);
  } else {
    return static_cast<Accumulator<T>>(x);
  }
}

template <class T>
inline T store(Accumulator<T> x) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bf16(x);
  } else if constexpr (std::is_same_v<T, Half>) {
    return to_f16(x);
  } else {
    return static_cast<T>(x);  // integers wrap around
  }
}

// The operator relu, of rounded numbers: -0 and NaN stay. Of a 16-bit float's bits those from -0's successor to minus
// infinity are below 0.
constexpr uint32_t kBelowZero = 0x8001;
constexpr uint32_t minus_infinity(BFloat16) { return 0xff80; }
constexpr uint32_t minus_infinity(Half) { return 0xfc00; }
PG_INLINE float relu(float x) { return x < 0 ? 0 : x; }
PG_INLINE double relu(double x) { return x < 0 ? 0 : x; }
template <class T>
PG_INLINE T relu(T x) {
  return {x.bits - kBelowZero <= minus_infinity(x) - kBelowZero ? uint16_t{0} : x.bits};
}

// NaN is not.
PG_INLINE bool is_above_0(float x) { return x > 0; }
PG_INLINE bool is_above_0(double x) { return x > 0; }
template <class T>
PG_INLINE bool is_above_0(T x) {
  return static_cast<uint16_t>(x.bits - 1u) < (minus_infinity(x) & 0x7fffu);
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
