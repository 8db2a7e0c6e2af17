// SPDX-License-Identifier: Apache-2.0
// What collectives compute: reductions in the order of members, rounded to their dtype at each step.
#include <algorithm>
#include <cstring>

#include "meeting.hpp"
#include "perigee/kernels/reference/operand.hpp"

namespace sim {
namespace {

using Bytes = std::vector<std::byte>;

template <class W>
W combine(uint32_t reduction, W a, W b) {
  if (reduction == PG_REDUCE_SUM || reduction == PG_REDUCE_MEAN) return pg::reference::wrapping_add(a, b);
  if constexpr (pg::reference::is_float<W>) {
    if (a != a || b != b) return a != a ? a : b;
  }
  return reduction == PG_REDUCE_MAX ? std::max(a, b) : std::min(a, b);
}

// `count` elements from `first` of all members' inputs.
Bytes reduce(const Part& part, const std::vector<Bytes>& inputs, uint64_t first, uint64_t count) {
  const auto size = static_cast<uint64_t>(pg::dtype_bytes(part.dtype));
  Bytes out(count * size);
  if (count == 0) return out;
  pg::reference::with_storage(part.dtype, [&](auto element) {
    using T = decltype(element);
    for (uint64_t i = 0; i < count; i++) {
      T total;
      std::memcpy(&total, inputs[0].data() + (first + i) * size, sizeof total);
      for (size_t k = 1; k < inputs.size(); k++) {
        T next;
        std::memcpy(&next, inputs[k].data() + (first + i) * size, sizeof next);
        if constexpr (std::is_same_v<T, uint8_t> || std::is_same_v<T, int8_t> || std::is_same_v<T, int16_t> ||
                      std::is_same_v<T, int32_t>) {
          total = static_cast<T>(combine<int64_t>(part.reduction, total, next));
        } else {
          const auto a = pg::reference::widen(total), b = pg::reference::widen(next);
          total = pg::reference::narrow<T>(combine(part.reduction, a, b));
        }
      }
      if (part.reduction == PG_REDUCE_MEAN) {
        const auto sum = pg::reference::widen(total);
        total = pg::reference::narrow<T>(sum / static_cast<decltype(sum)>(inputs.size()));
      }
      std::memcpy(out.data() + i * size, &total, sizeof total);
    }
  });
  return out;
}

void write(Part& part, uint64_t at, const std::byte* from, uint64_t bytes) {
  if (bytes > 0) std::memcpy(part.output.data() + at, from, bytes);
}

}  // namespace

void compute_collective(std::vector<Part>& parts) {
  const size_t n = parts.size();
  std::vector<Bytes> inputs(n);  // copies: outputs may be the same memory
  for (size_t k = 0; k < n; k++)
    if (parts[k].input.data() != nullptr)
      inputs[k].assign(parts[k].input.data(), parts[k].input.data() + parts[k].input.bytes());
  for (size_t k = 0; k < n; k++) {
    Part& part = parts[k];
    if (!part.takes_part) continue;
    const uint64_t bytes = part.count * static_cast<uint64_t>(pg::dtype_bytes(part.dtype));
    const auto peer = static_cast<size_t>(part.peer);
    switch (part.kind) {
      case PG_COLLECTIVE_ALL_REDUCE:
      case PG_COLLECTIVE_REDUCE:
        if (part.kind == PG_COLLECTIVE_REDUCE && k != peer) break;
        write(part, 0, reduce(part, inputs, 0, part.count).data(), bytes);
        break;
      case PG_COLLECTIVE_BROADCAST:
        if (k != peer) write(part, 0, inputs[peer].data(), bytes);
        break;
      case PG_COLLECTIVE_ALL_GATHER:
        for (size_t j = 0; j < n; j++) write(part, j * bytes, inputs[j].data(), bytes);
        break;
      case PG_COLLECTIVE_REDUCE_SCATTER:
        write(part, 0, reduce(part, inputs, k * part.count, part.count).data(), bytes);
        break;
      case PG_COLLECTIVE_ALL_TO_ALL:
        for (size_t j = 0; j < n; j++) write(part, j * bytes, inputs[j].data() + k * bytes, bytes);
        break;
      case PG_COLLECTIVE_RECEIVE: write(part, 0, inputs[peer].data(), bytes); break;
      default: break;  // barriers, and those that send
    }
  }
}

}  // namespace sim
