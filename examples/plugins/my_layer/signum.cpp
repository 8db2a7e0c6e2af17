// SPDX-License-Identifier: Apache-2.0
// The optimizer: hyperparameters, state, and the update as operators. optim.Signum in Lua.
#include <perigee/optimizer.hpp>

namespace {

// Bernstein et al. 2018, "signSGD: Compressed optimisation for non-convex problems": steps of one size, in the
// direction that the averaged gradient has had.
struct Signum {
  double lr = 1e-3, momentum = 0.9;

  void check() const {
    pg::check_not_negative(lr, "lr");
    pg::check_fraction(momentum, "momentum");
  }
  uint64_t slots() const { return 1; }  // bit 0: the first of `slots` below
  void update(const pg::OptimizerStep& step) const {
    for (const pg::Update& u : step.updates()) {
      pg::assign(u.state[0], u.state[0] * momentum + u.gradient * (1 - momentum));
      pg::assign(u.param, u.param - pg::sign(u.state[0]) * lr);
    }
  }
};

PG_OPTIMIZER(Signum, "Signum", "The sign of the averaged gradient, times lr")
    .attr(&Signum::lr, "lr", "length of every step")
    .attr(&Signum::momentum, "momentum", "how much of the average stays at each step, in [0, 1)")
    .slots({"average"});

}  // namespace
