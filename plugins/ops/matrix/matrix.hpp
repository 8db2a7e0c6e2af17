// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../rules.hpp"

namespace pg {

// [..., n] as [rows, n].
inline Value flatten_rows(Value x) {
  const pg_tensor& meta = x.meta();
  if (meta.rank == 2) return x;
  Dim rows = 1;
  for (uint32_t i = 0; i + 1 < meta.rank; i++) rows = rows * Dim(meta.shape[i]);
  return reshape(x, make_ints({rows.value, meta.shape[meta.rank - 1]}));
}

}  // namespace pg
