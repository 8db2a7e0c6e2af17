// SPDX-License-Identifier: Apache-2.0
// Lion (Chen et al., 2023, "Symbolic Discovery of Optimization Algorithms"): the sign of a mix of momentum and
// gradient.
#include "update.hpp"

namespace optimizers {
namespace {

struct Lion : Options {
  double beta1 = 0.9, beta2 = 0.99;

  Lion() { lr = 1e-4; }
  void check() const {
    check_common();
    pg::check_fraction(beta1, "beta1");
    pg::check_fraction(beta2, "beta2");
  }
  uint64_t slots() const { return 1; }

  void update(const pg::OptimizerStep& step) const {
    static constinit pg::OpRef op(PG_UPDATE_OP("lion", "beta1", "beta2"));
    emit_update(step, op, *this, [&](pg::Call& call, int at) { call.set(at, beta1).set(at + 1, beta2); });
  }
};

[[maybe_unused]] const auto& registered_lion =
    add<Lion>("Lion",
              "Steps of equal length along the sign of the momentum (Chen et al., 2023): w = (1 - lr weight_decay) w - "
              "lr sign(beta1 m + (1 - beta1) g), then m = beta2 m + (1 - beta2) g.",
              "part of a weight lost per lr")
        .attr(&Lion::beta1, "beta1", "part of the momentum in the step's direction")
        .attr(&Lion::beta2, "beta2", "decay of the momentum")
        .slots({"exp_avg"});

}  // namespace
}  // namespace optimizers
