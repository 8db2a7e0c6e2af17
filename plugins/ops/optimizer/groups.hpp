// SPDX-License-Identifier: Apache-2.0
// Operators that update many parameters in one launch.
#pragma once

#include "../rules.hpp"

namespace pg {

// Group `other` has one tensor for each parameter (group 0), of its shape; or none where that is allowed.
inline void check_group(const ShapeContext& c, uint32_t other, bool may_be_empty = false) {
  auto params = c.group(0), members = c.group(other);
  if (may_be_empty && members.empty()) return;
  c.need(params.size() == members.size(), "%s has %zu tensors; expected %zu, one for each parameter", c.name(other),
         members.size(), params.size());
  for (size_t k = 0; k < params.size(); k++) {
    c.need(params[k] != nullptr && members[k] != nullptr, "%s[%zu] is missing", c.name(other), k + 1);
    bool same = params[k]->rank == members[k]->rank;
    for (uint32_t i = 0; same && i < params[k]->rank; i++) same = dim_equal(params[k]->shape[i], members[k]->shape[i]);
    c.need(same, "%s[%zu] %s does not have the shape of its parameter, %s", c.name(other), k + 1,
           shape_text(*members[k]).c_str(), shape_text(*params[k]).c_str());
  }
}

constexpr uint32_t kUpdated = PG_INPUT_VARIADIC | PG_INPUT_MUTATES;

}  // namespace pg
