// SPDX-License-Identifier: Apache-2.0
// Dtypes in memory and what they are computed in (perigee/kernels/math.hpp): 16-bit floats in float, bool and the
// integers of less than 32 bits in int32_t.
#pragma once

#include <cstdint>
#include <type_traits>

#include "perigee/kernels/float16.hpp"
#include "perigee/plugin.hpp"

namespace cuda {

using pg::bf16;
using pg::f16;
struct Bool {
  uint8_t value;
};

template <class S>
using Compute = std::conditional_t<
    std::is_same_v<S, f16> || std::is_same_v<S, bf16>, float,
    std::conditional_t<std::is_same_v<S, Bool> || (std::is_integral_v<S> && sizeof(S) < 4), int32_t, S>>;
// What sums are kept in.
template <class S>
using Accumulate = std::conditional_t<std::is_integral_v<Compute<S>>, int64_t, Compute<S>>;

template <class S>
PG_HD Compute<S> unpack(S x) {
  if constexpr (std::is_same_v<S, f16> || std::is_same_v<S, bf16>)
    return pg::to_float(x);
  else if constexpr (std::is_same_v<S, Bool>)
    return x.value != 0;
  else
    return static_cast<Compute<S>>(x);
}
// From any number. Floats lose their fraction towards zero in integers; to Bool: not equal to zero.
template <class S, class T>
PG_HD S pack(T x) {
  if constexpr (std::is_same_v<S, f16>)
    return pg::to_f16(static_cast<float>(x));
  else if constexpr (std::is_same_v<S, bf16>)
    return pg::to_bf16(static_cast<float>(x));
  else if constexpr (std::is_same_v<S, Bool>)
    return Bool{static_cast<uint8_t>(x != T(0))};
  else
    return static_cast<S>(x);
}

template <class S>
struct Tag {
  using type = S;
};

// body(Tag<S>()) with the type in memory; throws PG_E_NOT_SUPPORTED for what is not in the list.
template <class Body>
auto with_float(uint32_t dtype, Body&& body) {
  switch (dtype) {
    case PG_F32: return body(Tag<float>());
    case PG_F16: return body(Tag<f16>());
    case PG_BF16: return body(Tag<bf16>());
    case PG_F64: return body(Tag<double>());
    default:
      pg::fail_support(pg::format("%s is not a floating dtype that CUDA kernels compute with", pg::dtype_name(dtype)));
  }
}
template <class Body>
auto with_number(uint32_t dtype, Body&& body) {
  switch (dtype) {
    case PG_I64: return body(Tag<int64_t>());
    case PG_I32: return body(Tag<int32_t>());
    case PG_I16: return body(Tag<int16_t>());
    case PG_I8: return body(Tag<int8_t>());
    case PG_U8: return body(Tag<uint8_t>());
    default: return with_float(dtype, std::forward<Body>(body));
  }
}
template <class Body>
auto with_any(uint32_t dtype, Body&& body) {
  if (dtype == PG_B8) return body(Tag<Bool>());
  return with_number(dtype, std::forward<Body>(body));
}

}  // namespace cuda
