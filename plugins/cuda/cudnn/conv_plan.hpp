// SPDX-License-Identifier: Apache-2.0
// The search for a convolution's plans. Needs no GPU where one is described.
#pragma once

#include "cudnn/conv_layout.hpp"
#include "cudnn/plan.hpp"

namespace cuda::dnn {

constexpr int64_t kConvAlignment = 16;  // bytes: the widest access of a thread

// What cuDNN is told, and the plan it led to.
struct ConvPlan {
  Layouts layouts;
  bool fused_bias = false;
  Plan plan;
};

// For aligned addresses. Of what is wanted `exact` follows from the dtype. None: no engine keeps our promises.
std::optional<ConvPlan> find_conv_plan(const ConvShape& shape, const Target& target, Wanted wanted);

// For addresses that are aligned to an element only, which are rare: within the workspace of the other plan, and never
// with a bias in the graph, which cuDNN would compile a kernel for.
std::optional<Plan> find_unaligned_plan(const ConvShape& shape, const ConvPlan& aligned, const Target& target,
                                        Wanted wanted);

}  // namespace cuda::dnn
