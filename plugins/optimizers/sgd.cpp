// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent, with momentum as PyTorch defines it (Sutskever et al., 2013, with lr outside the
// buffer).
#include "perigee/optimizer.hpp"

namespace {

struct Sgd {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  pg::Bool nesterov = false;

  void check() const {
    pg::check_not_negative(lr, "lr");
    pg::check_not_negative(momentum, "momentum");
    pg::check_not_negative(weight_decay, "weight_decay");
    if (nesterov && (momentum == 0 || dampening != 0)) {
      pg::fail_argument("nesterov needs a momentum and no dampening");
    }
  }
  uint64_t slots() const { return momentum != 0 ? 1 : 0; }

  void update(const pg::OptimizerStep& step) const {
    static constinit pg::OpRef op("sgd", "lr", "momentum", "dampening", "weight_decay", "nesterov", "first");
    for (const pg::UpdateGroup& group : step.groups()) {
      pg::Call call = step.call(op);
      call.inputs(group.params).inputs(group.gradients).inputs(group.state[0]);
      call.set(0, lr).set(1, momentum).set(2, dampening).set(3, weight_decay).set(4, bool(nesterov));
      call.set(5, step.number() == 1).emit(nullptr, 0);
    }
  }
};

PG_OPTIMIZER(Sgd, "SGD", "Stochastic gradient descent, optionally with momentum")
    .attr(&Sgd::lr, "lr", "learning rate")
    .attr(&Sgd::momentum, "momentum", "part of the last update that goes on")
    .attr(&Sgd::dampening, "dampening", "part of the gradient kept out of the momentum")
    .attr(&Sgd::weight_decay, "weight_decay", "L2 penalty, added to the gradient")
    .attr(&Sgd::nesterov, "nesterov", "look ahead along the momentum")
    .slots({"momentum_buffer"});

}  // namespace
