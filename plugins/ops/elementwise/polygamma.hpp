// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../rules.hpp"

namespace pg {

// The n-th derivative of digamma.
inline Value polygamma(Value x, int64_t n) {
  static constinit OpRef op("polygamma", "n");
  return Call(x.builder, op).input(x).set(0, n).emit();
}

}  // namespace pg
