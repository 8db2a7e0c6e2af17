// SPDX-License-Identifier: Apache-2.0
#include "groups.hpp"

#include <algorithm>

namespace cuda::fused {
namespace {

// Of one shape: element by element in the same places.
bool lie_alike(const pg_tensor& a, const pg_tensor& b) {
  if (!pg::same_shape(a, b)) return false;
  for (uint32_t i = 0; i < a.rank; i++)
    if (a.shape[i] != 1 && a.stride[i] != b.stride[i]) return false;
  return true;
}

}  // namespace

Groups::Groups(uint32_t nodes) : parent_(nodes), groups_(nodes) {
  for (uint32_t n = 0; n < nodes; n++) parent_[n] = n;
}

uint32_t Groups::find(uint32_t node) {
  while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
  return node;
}

void Groups::add_elementwise(uint32_t node, const pg_tensor& result, bool plain) {
  groups_[node].full = &result;
  groups_[node].plain = plain;
}

void Groups::add_lines(uint32_t node, const pg_tensor& x, const LineNode& line) {
  Group& g = groups_[node];
  g.full = &x;
  g.lines = true, g.axes = line.axes;
  g.streamed = line.streamed;
  if (g.streamed) g.together = line.axes.inner > 1 ? line.batch : line.width;
}

bool Groups::fit(const Group& a, const Group& b) {
  if (lie_alike(*a.full, *b.full)) {
    if (!a.lines || !b.lines) return true;
    if (a.axes != b.axes || a.streamed != b.streamed) return false;
    const bool columns = a.axes.inner > 1;
    return a.together == b.together || (columns && std::min(a.together, b.together) == 1);
  }
  auto takes_as_numbers = [](const Group& lines, const Group& numbers) {
    return lines.lines && !numbers.lines && numbers.plain && holds_numbers(*numbers.full, *lines.full, lines.axes);
  };
  return takes_as_numbers(a, b) || takes_as_numbers(b, a);
}

void Groups::join(uint32_t a, uint32_t b) {
  a = find(a), b = find(b);
  if (a == b || !fit(groups_[a], groups_[b])) return;
  for (const uint32_t n : groups_[a].barred)
    if (find(n) == b) return;
  for (const uint32_t n : groups_[b].barred)
    if (find(n) == a) return;
  Group &from = groups_[a], &to = groups_[b];
  if (pg::element_count(*from.full) > pg::element_count(*to.full)) to.full = from.full;
  if (from.lines) to.lines = true, to.axes = from.axes, to.streamed = from.streamed;
  to.together = std::max(to.together, from.together);
  to.plain = to.plain && from.plain;
  to.barred.insert(to.barred.end(), from.barred.begin(), from.barred.end());
  from.barred = {};
  parent_[a] = b;
}

void Groups::bar(uint32_t a, uint32_t b) {
  groups_[find(a)].barred.push_back(b);
  groups_[find(b)].barred.push_back(a);
}

bool Groups::spreads(uint32_t maker, const pg_tensor& t, const pg_tensor& shape) {
  const Group& g = groups_[find(maker)];
  return g.lines && !g.streamed && pg::same_shape(*g.full, shape) && spreads_numbers(t, shape, g.axes);
}

}  // namespace cuda::fused
