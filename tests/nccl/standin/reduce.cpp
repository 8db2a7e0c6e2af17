// SPDX-License-Identifier: Apache-2.0
// Arithmetic of reductions: each step is rounded to the dtype, integers wrap around.
#include <algorithm>
#include <cstring>

#include "../../cuda/standin/state.hpp"
#include "comm.hpp"
#include "perigee/kernels/reference/operand.hpp"

namespace standin {
namespace {

uint32_t dtype_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8: return PG_I8;
    case ncclUint8: return PG_U8;
    case ncclInt32: return PG_I32;
    case ncclInt64: return PG_I64;
    case ncclFloat16: return PG_F16;
    case ncclBfloat16: return PG_BF16;
    case ncclFloat32: return PG_F32;
    case ncclFloat64: return PG_F64;
    default: mistake("NCCL: an unexpected dtype");
  }
}

template <class W>
W combine(int op, W a, W b) {
  if (op == ncclSum || op == ncclAvg) return pg::reference::wrapping_add(a, b);
  if (pg::reference::is_float<W>) mistake("NCCL's largest and smallest of floats pass NaN over");
  return op == ncclMax ? std::max(a, b) : std::min(a, b);
}

}  // namespace

size_t bytes_of(ncclDataType_t type) { return static_cast<size_t>(pg::dtype_bytes(dtype_of(type))); }

void reduce(ncclDataType_t type, int op, const std::vector<const char*>& inputs, size_t count, char* output) {
  pg::reference::with_storage(dtype_of(type), [&](auto element) {
    using T = decltype(element);
    for (size_t i = 0; i < count; i++) {
      T total, next;
      std::memcpy(&total, inputs[0] + i * sizeof total, sizeof total);
      for (size_t k = 1; k < inputs.size(); k++) {
        std::memcpy(&next, inputs[k] + i * sizeof next, sizeof next);
        total = pg::reference::narrow<T>(combine(op, pg::reference::widen(total), pg::reference::widen(next)));
      }
      if (op == ncclAvg) {
        const auto sum = pg::reference::widen(total);
        total = pg::reference::narrow<T>(sum / static_cast<decltype(sum)>(inputs.size()));
      }
      std::memcpy(output + i * sizeof total, &total, sizeof total);
    }
  });
}

}  // namespace standin
