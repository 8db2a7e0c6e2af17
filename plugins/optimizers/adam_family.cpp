// SPDX-License-Identifier: Apache-2.0
// Relatives of Adam: Adamax (Kingma and Ba, 2014), NAdam (Dozat, 2016), RAdam (Liu et al., 2020).
#include "update.hpp"

namespace optimizers {
namespace {

struct Betas : Options {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;

  void check() const {
    check_common();
    pg::check_fraction(beta1, "beta1");
    pg::check_fraction(beta2, "beta2");
    pg::check_not_negative(eps, "eps");
  }
  uint64_t slots() const { return 3; }
  void set(pg::Call& call, int at) const { call.set(at, beta1).set(at + 1, beta2).set(at + 2, eps); }
};

struct Adamax : Betas {
  Adamax() { lr = 2e-3; }
  void update(const pg::OptimizerStep& step) const {
    static constinit pg::OpRef op(PG_UPDATE_OP("adamax", "beta1", "beta2", "eps"));
    emit_update(step, op, *this, [&](pg::Call& call, int at) { set(call, at); });
  }
};

struct RAdam : Betas {
  void update(const pg::OptimizerStep& step) const {
    static constinit pg::OpRef op(PG_UPDATE_OP("radam", "beta1", "beta2", "eps"));
    emit_update(step, op, *this, [&](pg::Call& call, int at) { set(call, at); });
  }
};

struct NAdam : Betas {
  double momentum_decay = 4e-3;

  NAdam() { lr = 2e-3; }
  void check() const {
    Betas::check();
    pg::check_not_negative(momentum_decay, "momentum_decay");
  }
  void update(const pg::OptimizerStep& step) const {
    static constinit pg::OpRef op(PG_UPDATE_OP("nadam", "beta1", "beta2", "eps", "momentum_decay"));
    emit_update(step, op, *this, [&](pg::Call& call, int at) {
      set(call, at);
      call.set(at + 3, momentum_decay);
    });
  }
};

template <class T>
pg::OptimizerSchema<T>& describe(pg::OptimizerSchema<T>& schema, const char* second) {
  return schema.attr(&T::beta1, "beta1", "decay of the running mean of gradients")
      .attr(&T::beta2, "beta2", second)
      .attr(&T::eps, "eps", "added to the denominator");
}

[[maybe_unused]] const int registered_adam_family = [] {
  const char* squares = "decay of the running mean of their squares";
  describe(add<Adamax>("Adamax",
                       "Adam in the infinity norm (Kingma and Ba, 2014): m = beta1 m + (1 - beta1) g, "
                       "u = max(beta2 u, |g| + eps), w -= lr / (1 - beta1^t) m / u in step t."),
           "decay of the largest gradient")
      .slots({"exp_avg", "exp_inf"});
  describe(
      add<RAdam>("RAdam",
                 "Adam that trusts the running mean of squares once enough steps are in it (Liu et al., 2020): with "
                 "n = 2 / (1 - beta2) - 1 and r = n - 2 t beta2^t / (1 - beta2^t), where r > 5 Adam's step times "
                 "sqrt((r - 4) (r - 2) n / ((n - 4) (n - 2) r)), else w -= lr m / (1 - beta1^t)."),
      squares)
      .slots({"exp_avg", "exp_avg_sq"});
  describe(
      add<NAdam>("NAdam",
                 "Adam with Nesterov's look ahead (Dozat, 2016): mu = beta1 (1 - 0.96^(t momentum_decay) / 2), and in "
                 "place of Adam's mean mu' m / (1 - product of all mu and mu') + (1 - mu) g / (1 - product of all "
                 "mu), mu' being that of the next step."),
      squares)
      .attr(&NAdam::momentum_decay, "momentum_decay", "how fast the momentum reaches beta1")
      .slots({"exp_avg", "exp_avg_sq"});
  return 0;
}();

}  // namespace
}  // namespace optimizers
