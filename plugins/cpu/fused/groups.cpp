// SPDX-License-Identifier: Apache-2.0
#include "groups.hpp"

#include <algorithm>

namespace cpu {

namespace {

// Of one shape: element by element in the same places.
bool lie_alike(const pg_tensor& a, const pg_tensor& b) {
  for (uint32_t i = 0; i < a.rank; i++) {
    if (a.shape[i] != 1 && a.stride[i] != b.stride[i]) return false;
  }
  return true;
}

}  // namespace

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

Groups::Groups(uint32_t nodes) : parent_(nodes), groups_(nodes) {
  for (uint32_t n = 0; n < nodes; n++) parent_[n] = n;
}

uint32_t Groups::find(uint32_t node) {
  while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
  return node;
}

void Groups::add_elementwise(uint32_t node, const pg_tensor& result, int width) {
  groups_[node].full = &result;
  groups_[node].width = width;
}

void Groups::add_lines(uint32_t node, const pg_tensor& x, int64_t length, bool leading, const pg_tensor* numbers) {
  groups_[node].full = &x;
  groups_[node].length = length;
  groups_[node].leading = leading;
  groups_[node].numbers = numbers;
}

bool Groups::fit(const Group& a, const Group& b) {
  if (a.width >= 0 && b.width >= 0 && a.width != b.width) return false;
  auto takes_as_numbers = [](const Group& lines, const Group& other) {
    return other.length == 0 && lines.numbers != nullptr && pg::same_shape(*lines.numbers, *other.full) &&
           lie_alike(*lines.numbers, *other.full);
  };
  if (!pg::same_shape(*a.full, *b.full)) return takes_as_numbers(a, b) || takes_as_numbers(b, a);
  if (!lie_alike(*a.full, *b.full)) return false;
  if (a.length != 0 && b.length != 0 && (a.length != b.length || a.leading != b.leading)) return false;
  return a.numbers == nullptr || b.numbers == nullptr || pg::same_shape(*a.numbers, *b.numbers) || !a.used || !b.used;
}

void Groups::join(uint32_t a, uint32_t b) {
  a = find(a), b = find(b);
  if (a == b || !fit(groups_[a], groups_[b])) return;
  if (groups_[a].barred.size() > groups_[b].barred.size()) std::swap(a, b);
  for (uint32_t n : groups_[a].barred)
    if (find(n) == b) return;
  Group &from = groups_[a], &to = groups_[b];
  const bool numbers = !pg::same_shape(*from.full, *to.full);
  if (numbers && from.length != 0) to.full = from.full;
  to.width = std::max(to.width, from.width);
  to.length = std::max(to.length, from.length);
  to.leading = to.leading || from.leading;
  if (to.numbers == nullptr ||
      (from.numbers != nullptr && !to.used && (from.used || from.numbers->rank > to.numbers->rank)))
    to.numbers = from.numbers;
  to.used = to.used || from.used || numbers;
  to.barred.insert(to.barred.end(), from.barred.begin(), from.barred.end());
  from.barred = {};
  parent_[a] = b;
}

void Groups::bar(uint32_t a, uint32_t b) {
  groups_[find(a)].barred.push_back(b);
  groups_[find(b)].barred.push_back(a);
}

bool Groups::makes_numbers(uint32_t node, const pg_tensor& like) {
  const Group& g = groups_[find(node)];
  return g.numbers != nullptr && pg::same_shape(*g.numbers, like);
}

}  // namespace cpu
