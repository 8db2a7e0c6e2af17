// SPDX-License-Identifier: Apache-2.0
#include "perigee/kernels/reference/optimizer.hpp"

#include "../launch.hpp"

namespace sim {
namespace {

template <class Rule>
void update(const Work& work) {
  constexpr uint32_t kOperands = Rule::kOperands;
  Operand found = work.input(kOperands);
  if (found && *static_cast<const uint8_t*>(found.data) != 0) return;
  double attrs[pg::update::kMaxAttrs];
  double* next = attrs;
  for (const char* name : Rule::kAttrs) *next++ = work.attr<double>(name);
  std::vector<Operand> groups[kOperands];
  for (uint32_t k = 0; k < kOperands; k++) groups[k] = work.group(k);
  for (size_t i = 0; i < groups[0].size(); i++) {
    Operand operands[kOperands];
    for (uint32_t k = 0; k < kOperands; k++) {
      if (i < groups[k].size()) operands[k] = groups[k][i];
    }
    pg::reference::update(Rule(attrs), operands);
  }
}

void check_found(const pg::KernelCall& call) {
  for (uint32_t i = 0; i < call.input_count(); i++) {
    if (call.has(i) && pg::dtype_class(pg::dtype_of(call.in(i))) == PG_M_BOOL && i + 1 != call.input_count()) {
      pg::fail_support(pg::format("%s: booleans are not updated", call.op()));
    }
  }
}

#define PG_ROW(name, Rule) PG_SIM_KERNEL(name, update<pg::update::Rule<double>>, kFloats | PG_M_BOOL, check_found);
PG_UPDATE_RULES(PG_ROW)
#undef PG_ROW

}  // namespace
}  // namespace sim
