// SPDX-License-Identifier: Apache-2.0
// What gradients are summed in: floats in Compute, integers without a sign, so that they wrap around.
#pragma once

#include "dtypes.hpp"

namespace cuda {

template <class S>
using GradSum =
    std::conditional_t<std::is_integral_v<S>, std::conditional_t<sizeof(S) == 8, uint64_t, uint32_t>, Compute<S>>;

template <class S>
PG_HD GradSum<S> to_sum(S x) {
  return static_cast<GradSum<S>>(unpack(x));
}
template <class S>
PG_HD S from_sum(GradSum<S> x) {
  if constexpr (std::is_integral_v<S>)
    return static_cast<S>(x);
  else
    return pack<S>(x);
}

// body(Tag<S>()) with the type that a dtype is read, summed and written as.
template <class Body>
void with_sum(uint32_t dtype, Body&& body) {
  switch (dtype) {
    case PG_I64: return body(Tag<uint64_t>());
    case PG_I32: return body(Tag<uint32_t>());
    case PG_I16: return body(Tag<uint16_t>());
    case PG_I8:
    case PG_U8: return body(Tag<uint8_t>());
    default: return with_float(dtype, body);
  }
}

}  // namespace cuda
