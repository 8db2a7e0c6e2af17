// SPDX-License-Identifier: Apache-2.0
#include "groups.hpp"

namespace pg {
namespace {

PG_OP("adam")
    .category("optimizer")
    .doc(
        "One step of Adam (Kingma, Ba 2015) on all parameters: with g = grad / grad_scale (+ weight_decay param, "
        "unless "
        "decoupled), m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, "
        "param -= lr (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps). decoupled first scales param by "
        "1 - lr weight_decay (AdamW: Loshchilov, Hutter 2019).")
    .input("params", kFloating, "any shapes", kUpdated)
    .input("grads", kFloating, "shapes of params", PG_INPUT_VARIADIC)
    .input("exp_avgs", kFloating, "shapes of params: m", kUpdated)
    .input("exp_avg_sqs", kFloating, "shapes of params: v", kUpdated)
    .attr<bool>("decoupled", false, "decay the parameters directly")
    .attr<double>("lr", 1e-3, "step size")
    .runtime()
    .attr<double>("beta1", 0.9, "decay of the mean")
    .runtime()
    .attr<double>("beta2", 0.999, "decay of the mean square")
    .runtime()
    .attr<double>("eps", 1e-8, "added to the root")
    .runtime()
    .attr<double>("weight_decay", 0, "pull towards 0")
    .runtime()
    .attr<double>("step", 1, "this step's number, from 1")
    .runtime()
    .attr<double>("grad_scale", 1, "the gradients are this much too large")
    .runtime()
    .traits(PG_OP_NO_GRAD)
    .shape([](ShapeContext& c) {
      for (uint32_t group = 1; group < 4; group++) check_group(c, group);
    });

}  // namespace
}  // namespace pg
