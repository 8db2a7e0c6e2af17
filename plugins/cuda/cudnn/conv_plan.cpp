// SPDX-License-Identifier: Apache-2.0
#include "cudnn/conv_plan.hpp"

#include "cudnn/conv_graph.hpp"

namespace cuda::dnn {
namespace {

std::optional<Plan> find(const ConvShape& s, const Layouts& layouts, bool fused_bias, int64_t alignment,
                         const Target& target, Wanted& wanted) {
  wanted.exact = s.dtype == PG_F32 || s.dtype == PG_F64;
  auto graph = std::make_shared<ConvGraph>(s, layouts, fused_bias, alignment);
  return find_plan(target, graph->operations(), wanted, graph);
}

std::optional<ConvPlan> attempt(const ConvShape& s, const Target& target, Wanted& wanted, bool as_given,
                                bool fused_bias) {
  ConvPlan result;
  result.layouts = choose_layouts(s, as_given), result.fused_bias = fused_bias;
  std::optional<Plan> plan = find(s, result.layouts, fused_bias, kConvAlignment, target, wanted);
  if (!plan) return std::nullopt;
  result.plan = std::move(*plan);
  return result;
}

}  // namespace

// Fused additions are compiled for tensor cores, so they are not asked for where these are not wanted.
std::optional<ConvPlan> find_conv_plan(const ConvShape& s, const Target& target, Wanted wanted) {
  bool half = s.dtype == PG_F16 || s.dtype == PG_BF16;
  std::optional<ConvPlan> found;
  if (s.bias && half) found = attempt(s, target, wanted, true, true);
  if (!found) found = attempt(s, target, wanted, true, false);
  if (!found && !choose_layouts(s, true).all_dense()) found = attempt(s, target, wanted, false, false);
  return found;
}

std::optional<Plan> find_unaligned_plan(const ConvShape& s, const ConvPlan& aligned, const Target& target,
                                        Wanted wanted) {
  wanted.workspace = aligned.plan.workspace();
  std::optional<Plan> plan = find(s, aligned.layouts, false, pg::dtype_bytes(s.dtype), target, wanted);
  if (!plan) take_cudnn_reason();  // of no interest to whoever fails next
  return plan;
}

}  // namespace cuda::dnn
