// SPDX-License-Identifier: Apache-2.0
#include "groups.hpp"

#include <algorithm>

namespace cuda::fused {
void Groups::add_elementwise(uint32_t node, const pg_tensor& result, bool plain) {
  Group& g = groups_.of(node);
  g.full = &result;
  g.plain = plain;
}

void Groups::add_lines(uint32_t node, const pg_tensor& x, const LineNode& line) {
  Group& g = groups_.of(node);
  g.full = &x;
  g.lines = true, g.axes = line.axes;
  g.streamed = line.streamed;
  if (g.streamed) g.together = line.axes.inner > 1 ? line.batch : line.width;
}

bool Groups::fit(const Group& a, const Group& b) {
  if (pg::same_shape(*a.full, *b.full) && pg::lie_alike(*a.full, *b.full)) {
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

void Groups::merge(Group& to, const Group& from) {
  if (pg::element_count(*from.full) > pg::element_count(*to.full)) to.full = from.full;
  if (from.lines) to.lines = true, to.axes = from.axes, to.streamed = from.streamed;
  to.together = std::max(to.together, from.together);
  to.plain = to.plain && from.plain;
}

bool Groups::spreads(uint32_t maker, const pg_tensor& t, const pg_tensor& shape) {
  const Group& g = groups_.of(maker);
  return g.lines && !g.streamed && pg::same_shape(*g.full, shape) && spreads_numbers(t, shape, g.axes);
}

bool Groups::has_rows(uint32_t node) {
  const Group& g = groups_.of(node);
  return g.lines && g.axes.inner == 1;
}

}  // namespace cuda::fused
