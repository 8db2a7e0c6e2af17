// SPDX-License-Identifier: Apache-2.0
// Linear layers of frozen calls with the batch norms behind them in their weights.
#pragma once

#include <vector>

#include "perigee/compiler.hpp"

namespace pg::cpu {

// By node of a frozen region: which linear layer with norms it is a part of, counted from 1; 0: of none.
std::vector<uint32_t> find_linear_nets(const Region& region);

// Whether a piece is one, or what a cut has left of one.
bool is_linear_net(const Region& piece);
Kernel* make_linear_net(const Region& piece, Plan& plan);

}  // namespace pg::cpu
