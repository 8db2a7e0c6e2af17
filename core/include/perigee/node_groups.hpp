// SPDX-License-Identifier: Apache-2.0
// perigee/node_groups.hpp: nodes of a region that are joined step by step, for compilers (compiler.hpp) that claim
// them.
#pragma once

#include <utility>
#include <vector>

#include "perigee/kernel.hpp"

namespace pg {

// Sets of nodes, each with a Group that says what it is. Each node is one at first. Nodes may be barred from each
// other: their sets are never joined.
template <class Group>
class NodeGroups {
 public:
  explicit NodeGroups(uint32_t nodes) : parent_(nodes), barred_(nodes), groups_(nodes) {
    for (uint32_t n = 0; n < nodes; n++) parent_[n] = n;
  }
  // The node that stands for the set.
  uint32_t find(uint32_t node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  Group& of(uint32_t node) { return groups_[find(node)]; }

  // Makes one set of two unless they are barred; fit(a, b) says whether their groups may be one, merge(to, from) makes
  // `to` that one.
  template <class Fit, class Merge>
  void join(uint32_t a, uint32_t b, const Fit& fit, const Merge& merge) {
    a = find(a), b = find(b);
    if (a == b || !fit(groups_[a], groups_[b])) return;
    if (barred_[a].size() > barred_[b].size()) std::swap(a, b);
    for (const uint32_t n : barred_[a])
      if (find(n) == b) return;
    merge(groups_[b], groups_[a]);
    barred_[b].insert(barred_[b].end(), barred_[a].begin(), barred_[a].end());
    barred_[a] = {};
    parent_[a] = b;
  }
  void bar(uint32_t a, uint32_t b) {
    barred_[find(a)].push_back(b);
    barred_[find(b)].push_back(a);
  }

 private:
  std::vector<uint32_t> parent_;
  std::vector<std::vector<uint32_t>> barred_;  // nodes of other sets
  std::vector<Group> groups_;
};

// Of two tensors of one shape: element by element in the same places.
inline bool lie_alike(const pg_tensor& a, const pg_tensor& b) {
  for (uint32_t i = 0; i < a.rank; i++)
    if (a.shape[i] != 1 && a.stride[i] != b.stride[i]) return false;
  return true;
}

}  // namespace pg
