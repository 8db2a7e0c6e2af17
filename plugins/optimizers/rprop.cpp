// SPDX-License-Identifier: Apache-2.0
// Rprop (Riedmiller and Braun, 1993): for whole batches; only signs of gradients count.
#include "update.hpp"

namespace optimizers {
namespace {

struct Rprop : Options {
  double etaminus = 0.5, etaplus = 1.2, step_min = 1e-6, step_max = 50;

  Rprop() { lr = 1e-2; }
  void check() const {
    check_common();
    if (!(etaminus > 0 && etaminus < 1)) pg::fail_argument(pg::format("etaminus must lie in (0, 1), got %g", etaminus));
    if (!(etaplus > 1)) pg::fail_argument(pg::format("etaplus must be above 1, got %g", etaplus));
    pg::check_not_negative(step_min, "step_min");
    if (!(step_max >= step_min)) pg::fail_argument(pg::format("step_max must be at least step_min, got %g", step_max));
  }
  uint64_t slots() const { return 3; }

  void update(const pg::OptimizerStep& step) const {
    static constinit pg::OpRef op(PG_UPDATE_OP("rprop", "etaminus", "etaplus", "step_min", "step_max"));
    emit_update(step, op, *this, [&](pg::Call& call, int at) {
      call.set(at, etaminus).set(at + 1, etaplus).set(at + 2, step_min).set(at + 3, step_max);
    });
  }
};

[[maybe_unused]] const auto& registered_rprop =
    add<Rprop>(
        "Rprop",
        "A step length an element, by whether its gradient keeps its sign (Riedmiller and Braun, 1993): s is times "
        "etaplus where it does, and etaminus where it does not (there the gradient counts as 0), within step_min and "
        "step_max; w -= s sign(g). For whole batches.")
        .attr(&Rprop::etaminus, "etaminus", "factor where the sign changes")
        .attr(&Rprop::etaplus, "etaplus", "factor where it stays")
        .attr(&Rprop::step_min, "step_min", "shortest step")
        .attr(&Rprop::step_max, "step_max", "longest step")
        .slots({"prev", "step_size"});

}  // namespace
}  // namespace optimizers
