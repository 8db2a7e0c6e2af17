// SPDX-License-Identifier: Apache-2.0
// Relatives of Adam: Adamax (Kingma and Ba, 2014), NAdam (Dozat, 2016), RAdam (Liu et al., 2020).
#include <cmath>

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

// The momentum grows from beta1 / 2 towards beta1: mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2). Steps use the
// product of all so far, which goes on from the last step's where that is known.
class MomentumProduct {
 public:
  static double momentum(double beta1, double decay, double t) { return beta1 * (1 - 0.5 * std::pow(0.96, t * decay)); }
  double at(double beta1, double decay, uint64_t step) {
    if (beta1 != beta1_ || decay != decay_ || step < step_) *this = MomentumProduct(beta1, decay);
    while (step_ < step) product_ *= momentum(beta1, decay, static_cast<double>(++step_));
    return product_;
  }
  MomentumProduct() = default;

 private:
  MomentumProduct(double beta1, double decay) : beta1_(beta1), decay_(decay) {}
  double beta1_ = -1, decay_ = -1, product_ = 1;
  uint64_t step_ = 0;
};

struct NAdam : Betas {
  double momentum_decay = 4e-3;

  NAdam() { lr = 2e-3; }
  void check() const {
    Betas::check();
    pg::check_not_negative(momentum_decay, "momentum_decay");
  }
  void update(const pg::OptimizerStep& step) const {
    static constinit pg::OpRef op(PG_UPDATE_OP("nadam", "beta1", "beta2", "eps", "mu", "mu_next", "mu_product"));
    static thread_local MomentumProduct known;
    double t = static_cast<double>(step.number()), product = known.at(beta1, momentum_decay, step.number());
    emit_update(step, op, *this, [&](pg::Call& call, int at) {
      set(call, at);
      call.set(at + 3, MomentumProduct::momentum(beta1, momentum_decay, t));
      call.set(at + 4, MomentumProduct::momentum(beta1, momentum_decay, t + 1)).set(at + 5, product);
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
