// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "storage.hpp"

namespace cpu {

// Fails where an element of p, which is dense in its axes and of a floating dtype, is not in [0, 1]: "bernoulli: p is
// 1.5 at position [4]; expected 0 to 1". The first one in row-major order is named.
void check_probabilities(const pg_tensor& p, const void* data, const char* op);
// The same of a variance below 0: "gaussian_nll_loss: var is -0.5 at position [2]; expected 0 or more". NaN passes.
void check_variances(const pg_tensor& var, const void* data, const char* op);

}  // namespace cpu
