// SPDX-License-Identifier: Apache-2.0
#include "groups.hpp"

namespace pg {
namespace {

PG_OP("sgd")
    .category("optimizer")
    .doc(
        "One step of gradient descent on all parameters: with g = grad + weight_decay param and, where there are "
        "momentum buffers, b = momentum b + (1 - dampening) g (b = g on the first step), and g = b, or "
        "g + momentum b for nesterov (Sutskever et al. 2013): param -= lr g.")
    .input("params", kFloating, "any shapes", kUpdated)
    .input("grads", kFloating, "shapes of params", PG_INPUT_VARIADIC)
    .input("momentum_buffers", kFloating, "shapes of params, or none: b", kUpdated)
    .attr<bool>("nesterov", false, "look ahead")
    .attr<double>("lr", 1e-3, "step size")
    .runtime()
    .attr<double>("momentum", 0, "decay of the buffers")
    .runtime()
    .attr<double>("dampening", 0, "how much of the gradient is left out of the buffers")
    .runtime()
    .attr<double>("weight_decay", 0, "pull towards 0")
    .runtime()
    .attr<int>("first", 0, "1 on the first step, when the buffers hold nothing yet")
    .runtime()
    .traits(PG_OP_NO_GRAD)
    .shape([](ShapeContext& c) {
      check_group(c, 1);
      check_group(c, 2, true);
    });

}  // namespace
}  // namespace pg
