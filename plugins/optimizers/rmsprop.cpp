// SPDX-License-Identifier: Apache-2.0
// RMSprop (Tieleman and Hinton, 2012), with PyTorch's order: the root is taken before eps is added.
#include "update.hpp"

namespace optimizers {
namespace {

struct RmsProp : Options {
  double alpha = 0.99, eps = 1e-8, momentum = 0;
  pg::Bool centered = false;

  RmsProp() { lr = 1e-2; }
  void check() const {
    check_common();
    pg::check_fraction(alpha, "alpha");
    pg::check_not_negative(eps, "eps");
    pg::check_not_negative(momentum, "momentum");
  }
  uint64_t slots() const { return 1u | (momentum != 0 ? 2u : 0) | (centered ? 4u : 0); }

  void update(const pg::OptimizerStep& step) const {
    static constinit pg::OpRef op(PG_UPDATE_OP("rmsprop", "alpha", "eps", "momentum"));
    emit_update(step, op, *this,
                [&](pg::Call& call, int at) { call.set(at, alpha).set(at + 1, eps).set(at + 2, momentum); });
  }
};

[[maybe_unused]] const auto& registered_rmsprop =
    add<RmsProp>(
        "RMSprop",
        "Steps divided by a running root mean square of the gradient (Tieleman and Hinton, 2012): v = alpha v + "
        "(1 - alpha) g^2, d = g / (sqrt(v) + eps), w -= lr d. momentum: b = momentum b + d in place of d. centered: "
        "v less the square of the mean gradient (Graves, 2013).")
        .attr(&RmsProp::alpha, "alpha", "decay of the running means")
        .attr(&RmsProp::eps, "eps", "added to the denominator")
        .attr(&RmsProp::momentum, "momentum", "part of the last update that goes on")
        .attr(&RmsProp::centered, "centered", "divide by the deviation from the mean gradient")
        .slots({"square_avg", "momentum_buffer", "grad_avg"});

}  // namespace
}  // namespace optimizers
