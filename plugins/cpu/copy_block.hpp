// SPDX-License-Identifier: Apache-2.0
// Copies of short blocks, of which a call of memcpy takes longer than what it does. To be called by bodies of
// call_vector and vector_for.
#pragma once

#include <cstdint>
#include <cstring>

#include "linalg/isa.hpp"

namespace cpu {

// The last vector overlaps the one before it. Blocks do not overlap each other.
PG_INLINE void copy_block(void* target, const void* source, int64_t bytes) {
  typedef int64_t Part __attribute__((vector_size(32), aligned(1), may_alias));
  constexpr int64_t kPart = sizeof(Part), kShort = 1024;
  char* to = static_cast<char*>(target);
  const char* from = static_cast<const char*>(source);
  if (bytes < kPart || bytes > kShort) {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  for (int64_t i = 0; i < bytes - kPart; i += kPart)
    *reinterpret_cast<Part*>(to + i) = *reinterpret_cast<const Part*>(from + i);
  *reinterpret_cast<Part*>(to + bytes - kPart) = *reinterpret_cast<const Part*>(from + bytes - kPart);
}

}  // namespace cpu
