// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent, with momentum as PyTorch defines it (Sutskever et al., 2013, with lr outside the
// buffer).
#include "update.hpp"

namespace optimizers {
namespace {

struct Sgd : Options {
  double momentum = 0, dampening = 0;
  pg::Bool nesterov = false;

  void check() const {
    check_common();
    pg::check_not_negative(momentum, "momentum");
    if (nesterov && (momentum == 0 || dampening != 0)) {
      pg::fail_argument("nesterov needs a momentum and no dampening");
    }
  }
  uint64_t slots() const { return momentum != 0 ? 1 : 0; }

  void update(const pg::OptimizerStep& step) const {
    static constinit pg::OpRef op(PG_UPDATE_OP("sgd", "momentum", "dampening", "nesterov"));
    emit_update(step, op, *this, [&](pg::Call& call, int at) {
      call.set(at, momentum).set(at + 1, dampening).set(at + 2, bool(nesterov));
    });
  }
};

[[maybe_unused]] const auto& registered_sgd =
    add<Sgd>("SGD",
             "Stochastic gradient descent: w -= lr g. momentum (Sutskever et al., 2013): b = momentum b + (1 - "
             "dampening) g, "
             "and b = g in the first step; w -= lr b. nesterov: w -= lr (g + momentum b).")
        .attr(&Sgd::momentum, "momentum", "part of the last update that goes on")
        .attr(&Sgd::dampening, "dampening", "part of the gradient kept out of the momentum")
        .attr(&Sgd::nesterov, "nesterov", "look ahead along the momentum")
        .slots({"momentum_buffer"});

}  // namespace
}  // namespace optimizers
