// SPDX-License-Identifier: Apache-2.0
// What the operators between processes share: a group's attributes, and what one process alone computes.
#pragma once

#include "../rules.hpp"

namespace pg::collective {

// "op", in the order of PG_REDUCE_*.
enum Kind { kSum, kMean, kMax, kMin };

// Group 0 is this process alone.
inline int64_t check_ranks(const ShapeContext& c) {
  const int64_t ranks = c.get<int>("ranks");
  c.need(ranks >= 1, "ranks is %lld; expected at least 1", static_cast<long long>(ranks));
  c.need(c.get<int>("group") != 0 || ranks == 1, "ranks is %lld; expected 1 where group is 0, this process alone",
         static_cast<long long>(ranks));
  return ranks;
}

inline void check_reduction(const ShapeContext& c) {
  const uint32_t kind = c.get<Choice>("op"), dtype = c.dtype(0);
  c.need(kind != kMean || dtype_class(dtype) == PG_M_FLOAT, "op is mean and x is %s; expected a floating dtype",
         dtype_name(dtype));
  if ((kind == kSum || kind == kMean) && c.get<int>("group") != 0 && dtype_class(dtype) == PG_M_FLOAT &&
      deterministic())
    fail_support(
        "adds up as many tensors as there are processes, and deterministic=true lets no result depend on how many"
        " there are; expected op max or min, or whole numbers");
}

inline void check_root(const ShapeContext& c) {
  const int64_t root = c.get<int>("root"), ranks = c.get<int>("ranks");
  c.need(root >= 0 && root < ranks, "root is %lld; expected a rank of the group, 0..%lld", static_cast<long long>(root),
         static_cast<long long>(ranks - 1));
}

// The first axis in as many equal blocks as there are ranks.
inline Dim block_of(const ShapeContext& c, int64_t ranks) {
  c.check_rank(0, 1);
  const Dim rows = c.dim(0, 0);
  c.need(rows.symbolic() || rows.value % ranks == 0,
         "x is %s; expected a first axis that %lld ranks share in equal parts", c.text(0).c_str(),
         static_cast<long long>(ranks));
  return rows / Dim(ranks);
}

// The gradient of op mean is one rank's share of that of sum; largest and smallest have none.
inline Value share(const GradContext& g, Value dy) {
  const uint32_t kind = g.get<Choice>("op");
  if (kind != kSum && kind != kMean) fail_support("op max and min are not differentiable between processes");
  return kind == kSum ? dy : dy / static_cast<double>(g.get<int>("ranks"));
}

}  // namespace pg::collective
