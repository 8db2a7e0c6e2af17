// SPDX-License-Identifier: Apache-2.0
// How much there is to compute, to choose a way by, of shapes whose result no memory needs to hold.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>

namespace pg::cpu {

// The product of sizes; the largest number where it is larger.
inline int64_t work_of(std::initializer_list<int64_t> sizes) {
  int64_t work = 1;
  bool overflow = false;
  for (int64_t size : sizes) {
    if (size == 0) return 0;
    overflow = overflow || __builtin_mul_overflow(work, size, &work);
  }
  return overflow ? std::numeric_limits<int64_t>::max() : work;
}

}  // namespace pg::cpu
