// SPDX-License-Identifier: Apache-2.0
#include "groups.hpp"

#include <algorithm>

namespace cpu {

int64_t line_length(const pg_tensor& t, const pg_tensor& of) {
  const int64_t numbers = pg::element_count(t), all = pg::element_count(of);
  if (numbers == 0) return 0;
  if (numbers == 1) return all;
  if (t.rank != of.rank) return 0;
  uint32_t axis = 0;
  while (axis < t.rank && t.shape[axis] == of.shape[axis]) axis++;
  while (axis < t.rank && t.shape[axis] == 1) axis++;
  return axis == t.rank ? all / numbers : 0;
}

void Groups::add_elementwise(uint32_t node, const pg_tensor& result, int width) {
  Group& g = groups_.of(node);
  g.full = &result;
  g.width = width;
}

void Groups::add_lines(uint32_t node, const pg_tensor& x, int64_t length, bool leading, const pg_tensor* numbers) {
  Group& g = groups_.of(node);
  g.full = &x;
  g.length = length;
  g.leading = leading;
  g.numbers = numbers;
}

bool Groups::fit(const Group& a, const Group& b) {
  if (a.width >= 0 && b.width >= 0 && a.width != b.width) return false;
  auto takes_as_numbers = [](const Group& lines, const Group& other) {
    return other.length == 0 && lines.numbers != nullptr && pg::same_shape(*lines.numbers, *other.full) &&
           pg::lie_alike(*lines.numbers, *other.full);
  };
  if (!pg::same_shape(*a.full, *b.full)) return takes_as_numbers(a, b) || takes_as_numbers(b, a);
  if (!pg::lie_alike(*a.full, *b.full)) return false;
  if (a.length != 0 && b.length != 0 && (a.length != b.length || a.leading != b.leading)) return false;
  return a.numbers == nullptr || b.numbers == nullptr || pg::same_shape(*a.numbers, *b.numbers) || !a.used || !b.used;
}

void Groups::merge(Group& to, const Group& from) {
  const bool numbers = !pg::same_shape(*from.full, *to.full);
  if (numbers && from.length != 0) to.full = from.full;
  to.width = std::max(to.width, from.width);
  to.length = std::max(to.length, from.length);
  to.leading = to.leading || from.leading;
  if (to.numbers == nullptr ||
      (from.numbers != nullptr && !to.used && (from.used || from.numbers->rank > to.numbers->rank)))
    to.numbers = from.numbers;
  to.used = to.used || from.used || numbers;
}

bool Groups::makes_numbers(uint32_t node, const pg_tensor& like) {
  const Group& g = groups_.of(node);
  return g.numbers != nullptr && pg::same_shape(*g.numbers, like);
}

}  // namespace cpu
