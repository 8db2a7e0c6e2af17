// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/optimizer.hpp: a step of a rule of perigee/kernels/optimizer.hpp, in double.
#pragma once

#include "perigee/kernels/optimizer.hpp"
#include "perigee/kernels/reference/operand.hpp"

namespace pg::reference {

// operands[0]: the parameter, [1]: its gradient, then the state; absent ones have no dtype.
template <class Rule, int N = Rule::kOperands>
void update(const Rule& rule, const Operand (&operands)[N]) {
  std::vector<double> values[N];
  uint32_t present = 0;
  for (int k = 0; k < N; k++) {
    if (!operands[k]) continue;
    values[k] = read<double>(operands[k]);
    present |= 1u << k;
  }
  for (size_t i = 0; i < values[0].size(); i++) {
    double x[N] = {};
    for (int k = 0; k < N; k++) {
      if ((present >> k & 1u) != 0) x[k] = values[k][i];
    }
    rule(x, present);
    for (int k = 0; k < N; k++) {
      if ((present >> k & 1u) != 0) values[k][i] = x[k];
    }
  }
  for (int k = 0; k < N; k++) {
    if (k != 1 && operands[k]) write(operands[k], values[k]);
  }
}

}  // namespace pg::reference
