// SPDX-License-Identifier: Apache-2.0
#include "compile/plan.hpp"

#include <algorithm>
#include <cstring>

namespace perigee {
namespace {

constexpr uint64_t alignment = 256;

uint64_t rounded(uint64_t bytes) { return (std::max<uint64_t>(bytes, 1) + alignment - 1) / alignment * alignment; }

bool same_tensor(const TensorPlan& a, const TensorPlan& b) {
  return a.outside == b.outside && a.meta.get() == b.meta.get() && a.device == b.device && a.place == b.place &&
         a.leaf == b.leaf && a.view == b.view && a.born == b.born;
}

}  // namespace

bool same_static(const Item& a, const Item& b) {
  if (a.kind != b.kind || a.op != b.op || a.flags != b.flags || !(a.around == b.around) || a.inputs != b.inputs ||
      a.outputs != b.outputs || a.groups != b.groups || a.in_place != b.in_place ||
      (a.launch == no_number) != (b.launch == no_number) || a.attrs.size() != b.attrs.size())
    return false;
  if (a.grads.size() != b.grads.size() || a.with_history != b.with_history) return false;
  for (size_t i = 0; i < a.grads.size(); i++)
    if (a.grads[i].leaf != b.grads[i].leaf || a.grads[i].gradient != b.grads[i].gradient) return false;
  const size_t bytes = a.launch != no_number ? a.op->info->static_size : a.attrs.size();
  return bytes == 0 || std::memcmp(a.attrs.data(), b.attrs.data(), bytes) == 0;
}

bool same_until(const Plan& a, const Plan& b, size_t items) {
  if (a.items.size() < items || b.items.size() < items) return false;
  uint32_t tensors = 0;
  auto reach = [&](const std::vector<uint32_t>& numbers) {
    for (uint32_t n : numbers)
      if (n != no_number) tensors = std::max(tensors, n + 1);
  };
  for (size_t i = 0; i < items; i++) {
    if (!same_static(a.items[i], b.items[i])) return false;
    reach(a.items[i].inputs);
    reach(a.items[i].outputs);
    for (const GradientPlan& g : a.items[i].grads) reach({g.gradient});
  }
  if (a.tensors.size() < tensors || b.tensors.size() < tensors) return false;
  for (uint32_t n = 0; n < tensors; n++)
    if (!same_tensor(a.tensors[n], b.tensors[n])) return false;
  const size_t scopes = std::min(a.scopes.size(), b.scopes.size());
  return std::equal(a.scopes.begin(), a.scopes.begin() + static_cast<ptrdiff_t>(scopes), b.scopes.begin());
}

// Large ones first, each where the gap between those that live at the same time fits it best.
void Plan::lay_out(const std::vector<uint8_t>& outliving) {
  if (arena && outlives == outliving) return;
  outlives = outliving;
  std::vector<uint32_t> order;
  for (uint32_t s = 0; s < slots.size(); s++)
    if (!outlives[s] && slots[s].first != no_number) order.push_back(s);
  bound = 0;
  std::vector<std::pair<uint32_t, int64_t>> changes;
  for (uint32_t s : order) {
    changes.emplace_back(slots[s].first * 2, static_cast<int64_t>(rounded(slots[s].bytes)));
    changes.emplace_back(slots[s].last * 2 + 1, -static_cast<int64_t>(rounded(slots[s].bytes)));
  }
  std::sort(changes.begin(), changes.end());
  int64_t live = 0;
  for (auto& [when, bytes] : changes) bound = std::max<uint64_t>(bound, static_cast<uint64_t>(live += bytes));
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return slots[a].bytes > slots[b].bytes; });
  std::vector<uint32_t> placed;  // by offset
  arena_bytes = 0;
  for (uint32_t s : order) {
    Slot& slot = slots[s];
    const uint64_t bytes = rounded(slot.bytes);
    uint64_t end = 0, best = UINT64_MAX, best_gap = UINT64_MAX;
    for (uint32_t other : placed) {
      const Slot& o = slots[other];
      if (o.last < slot.first || slot.last < o.first) continue;
      if (o.offset >= end + bytes && o.offset - end < best_gap) best = end, best_gap = o.offset - end;
      end = std::max(end, o.offset + rounded(o.bytes));
    }
    slot.offset = best != UINT64_MAX ? best : end;
    arena_bytes = std::max(arena_bytes, slot.offset + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), s,
                                   [&](uint32_t a, uint32_t b) { return slots[a].offset < slots[b].offset; }),
                  s);
  }
  arena = StorageRef::adopt(new Storage());
  arena->device = device();
  arena->bytes = arena_bytes;
  loose.clear();
  for (uint32_t i = 0; i < operands.size(); i++) {
    Operand& o = operands[i];
    if (o.place.outside || outlives[o.place.base]) {
      loose.push_back(i);
      o.tensor->storage = nullptr;
      continue;
    }
    o.tensor->storage = arena;
    o.tensor->offset = static_cast<int64_t>(slots[o.place.base].offset) + o.place.offset;
  }
}

}  // namespace perigee
