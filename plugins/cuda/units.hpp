// SPDX-License-Identifier: Apache-2.0
// Elements that are only moved have no dtype: they travel in the widest units, of up to 16 bytes, that sizes, strides
// and addresses allow.
#pragma once

#include <cstdint>

#include "perigee/plugin.hpp"

namespace cuda {

struct alignas(16) Unit16 {
  uint64_t low, high;
};

// The largest power of two, up to 16, that divides everything that was or-ed into `numbers`.
constexpr uint32_t unit_of(uint64_t numbers) {
  numbers |= 16;
  return static_cast<uint32_t>(numbers & (~numbers + 1));
}

template <class U>
struct UnitTag {
  using type = U;
};
// body(UnitTag<U>()) with a type of so many bytes.
template <class Body>
void with_unit(uint32_t bytes, Body&& body) {
  switch (bytes) {
    case 1: return body(UnitTag<uint8_t>());
    case 2: return body(UnitTag<uint16_t>());
    case 4: return body(UnitTag<uint32_t>());
    case 8: return body(UnitTag<uint64_t>());
    case 16: return body(UnitTag<Unit16>());
    default: pg::fail_support(pg::format("elements of %u bytes are not moved", bytes));
  }
}
// Of one element of a dtype that this plugin reads.
template <class Body>
void with_element(uint32_t bytes, Body&& body) {
  switch (bytes) {
    case 1: return body(UnitTag<uint8_t>());
    case 2: return body(UnitTag<uint16_t>());
    case 4: return body(UnitTag<uint32_t>());
    case 8: return body(UnitTag<uint64_t>());
    default: pg::fail_support(pg::format("elements of %u bytes are not moved one by one", bytes));
  }
}

inline uint32_t element_bytes(const pg_tensor& t) { return static_cast<uint32_t>(pg::dtype_bytes(pg::dtype_of(t))); }

}  // namespace cuda
