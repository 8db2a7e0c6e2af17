// SPDX-License-Identifier: Apache-2.0
// Elements as whole numbers in their order, which a radix sort reads (sort.cu, unique.cu).
#pragma once

#include <cstring>
#include <type_traits>

#include "dtypes.hpp"

namespace cuda {

// Rising with x, in the width of the compute type: equal zeros, and NaN, the same for all of them, above everything.
template <class T>
PG_HD uint64_t order_key(T x) {
  constexpr uint64_t kTop = sizeof(T) == 8 ? uint64_t{1} << 63 : uint64_t{1} << 31, kAll = kTop - 1 + kTop;
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return kAll;
    if (x == T(0)) return kTop;
    std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t> bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & kTop) != 0 ? ~bits & kAll : bits | kTop;
  } else {
    return (static_cast<uint64_t>(x) & kAll) ^ kTop;
  }
}

}  // namespace cuda
