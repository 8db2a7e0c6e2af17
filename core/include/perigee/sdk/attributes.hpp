// SPDX-License-Identifier: Apache-2.0
// What is said of an attribute that an operator does not have. For the sources beside it.
#pragma once

#include <string>

#include "perigee/plugin.hpp"

namespace pg {

// Of internal linkage, as in declared.hpp.
[[noreturn]] inline static void fail_attr(const pg_op_info& op, const char* name) {
  std::string known;
  for (uint32_t i = 0; i < op.attr_count; i++) known += (i > 0 ? ", " : "") + std::string(op.attrs[i]->name);
  fail(PG_E_INTERNAL,
       format("%s has no attribute '%s'; it has%s", op.name, name, known.empty() ? " none" : (": " + known).c_str()));
}

}  // namespace pg
