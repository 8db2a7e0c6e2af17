// SPDX-License-Identifier: Apache-2.0
// Adagrad (Duchi, Hazan and Singer, 2011) and Adadelta (Zeiler, 2012).
#include "update.hpp"

namespace optimizers {
namespace {

struct Adagrad : Options {
  double lr_decay = 0, initial_accumulator_value = 0, eps = 1e-10;

  Adagrad() { lr = 1e-2; }
  void check() const {
    check_common();
    pg::check_not_negative(lr_decay, "lr_decay");
    pg::check_not_negative(initial_accumulator_value, "initial_accumulator_value");
    pg::check_not_negative(eps, "eps");
  }
  uint64_t slots() const { return 1; }

  void update(const pg::OptimizerStep& step) const {
    static constinit pg::OpRef op(PG_UPDATE_OP("adagrad", "lr_decay", "initial_accumulator_value", "eps"));
    emit_update(step, op, *this, [&](pg::Call& call, int at) {
      call.set(at, lr_decay).set(at + 1, initial_accumulator_value).set(at + 2, eps);
    });
  }
};

struct Adadelta : Options {
  double rho = 0.9, eps = 1e-6;

  Adadelta() { lr = 1; }
  void check() const {
    check_common();
    pg::check_fraction(rho, "rho");
    pg::check_not_negative(eps, "eps");
  }
  uint64_t slots() const { return 3; }

  void update(const pg::OptimizerStep& step) const {
    static constinit pg::OpRef op(PG_UPDATE_OP("adadelta", "rho", "eps"));
    emit_update(step, op, *this, [&](pg::Call& call, int at) { call.set(at, rho).set(at + 1, eps); });
  }
};

[[maybe_unused]] const int registered_adagrad = [] {
  add<Adagrad>("Adagrad",
               "Steps divided by the root of all squared gradients g so far (Duchi, Hazan and Singer, 2011): s = s + "
               "g^2, w -= lr / "
               "(1 + (t - 1) lr_decay) g / (sqrt(s) + eps) in step t.")
      .attr(&Adagrad::lr_decay, "lr_decay", "the rate of step t is lr / (1 + (t - 1) lr_decay)")
      .attr(&Adagrad::initial_accumulator_value, "initial_accumulator_value", "where the sum of squares begins")
      .attr(&Adagrad::eps, "eps", "added to the denominator")
      .slots({"sum"});
  add<Adadelta>(
      "Adadelta",
      "Steps of the size that past steps had, in units of the parameter (Zeiler, 2012): v = rho v + (1 - rho) g^2, "
      "d = g sqrt(a + eps) / sqrt(v + eps), a = rho a + (1 - rho) d^2, w -= lr d.")
      .attr(&Adadelta::rho, "rho", "decay of the running means")
      .attr(&Adadelta::eps, "eps", "added to both means")
      .slots({"square_avg", "acc_delta"});
  return 0;
}();

}  // namespace
}  // namespace optimizers
