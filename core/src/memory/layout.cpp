// SPDX-License-Identifier: Apache-2.0
#include "memory/layout.hpp"

#include <algorithm>
#include <numeric>

namespace perigee {

uint64_t placed_bytes(uint64_t bytes) {
  constexpr uint64_t alignment = 256;
  return (std::max<uint64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
}

uint64_t place_lifetimes(std::vector<Lifetime>& list) {
  std::vector<uint32_t> order(list.size()), placed;  // placed: by offset
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return list[a].bytes > list[b].bytes; });
  uint64_t size = 0;
  for (uint32_t i : order) {
    Lifetime& x = list[i];
    const uint64_t bytes = placed_bytes(x.bytes);
    uint64_t end = 0, best = UINT64_MAX, best_gap = UINT64_MAX;
    for (uint32_t other : placed) {
      const Lifetime& o = list[other];
      if (o.last < x.first || x.last < o.first) continue;
      if (o.offset >= end + bytes && o.offset - end < best_gap) best = end, best_gap = o.offset - end;
      end = std::max(end, o.offset + placed_bytes(o.bytes));
    }
    x.offset = best != UINT64_MAX ? best : end;
    size = std::max(size, x.offset + bytes);
    auto behind = [&](uint32_t a, uint32_t b) { return list[a].offset < list[b].offset; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i, behind), i);
  }
  return size;
}

uint64_t live_at_once(const std::vector<Lifetime>& list) {
  std::vector<std::pair<uint64_t, int64_t>> changes;
  for (const Lifetime& x : list) {
    const auto bytes = static_cast<int64_t>(placed_bytes(x.bytes));
    changes.emplace_back(uint64_t{x.first} * 2, bytes);
    changes.emplace_back(uint64_t{x.last} * 2 + 1, -bytes);
  }
  std::sort(changes.begin(), changes.end());
  int64_t live = 0, most = 0;
  for (auto& [when, bytes] : changes) most = std::max(most, live += bytes);
  return static_cast<uint64_t>(most);
}

}  // namespace perigee
