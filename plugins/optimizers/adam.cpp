// SPDX-License-Identifier: Apache-2.0
// Adam (Kingma and Ba, 2014) and AdamW (Loshchilov and Hutter, 2017): they differ in where the weight decay goes.
// amsgrad: Reddi et al., 2018.
#include "update.hpp"

namespace optimizers {
namespace {

struct AdamBase : Options {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  pg::Bool amsgrad = false;

  void check() const {
    check_common();
    pg::check_fraction(beta1, "beta1");
    pg::check_fraction(beta2, "beta2");
    pg::check_not_negative(eps, "eps");
  }
  uint64_t slots() const { return amsgrad ? 7 : 3; }
  void emit(const pg::OptimizerStep& step, bool decoupled) const {
    static constinit pg::OpRef op(PG_UPDATE_OP("adam", "beta1", "beta2", "eps", "decoupled"));
    emit_update(step, op, *this, [&](pg::Call& call, int at) {
      call.set(at, beta1).set(at + 1, beta2).set(at + 2, eps).set(at + 3, decoupled);
    });
  }
};

struct Adam : AdamBase {
  void update(const pg::OptimizerStep& step) const { emit(step, false); }
};
struct AdamW : AdamBase {
  AdamW() { weight_decay = 0.01; }
  void update(const pg::OptimizerStep& step) const { emit(step, true); }
};

template <class T>
void describe(pg::OptimizerSchema<T>& schema) {
  schema.attr(&T::beta1, "beta1", "decay of the running mean of gradients")
      .attr(&T::beta2, "beta2", "decay of the running mean of their squares")
      .attr(&T::eps, "eps", "added to the denominator")
      .attr(&T::amsgrad, "amsgrad", "divide by the root of the largest mean square so far")
      .slots({"exp_avg", "exp_avg_sq", "max_exp_avg_sq"});
}

[[maybe_unused]] const int registered_adam = [] {
  describe(add<Adam>("Adam",
                     "Steps scaled by running means of the gradient g and its square (Kingma and Ba, 2014): "
                     "m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, w -= lr (m / (1 - beta1^t)) / "
                     "(sqrt(v / (1 - beta2^t)) + eps) in step t."));
  describe(add<AdamW>("AdamW",
                      "Adam with the weight decay outside the gradient (Loshchilov and Hutter, 2017): "
                      "w = (1 - lr weight_decay) w, then Adam's step.",
                      "part of a weight lost per lr"));
  return 0;
}();

}  // namespace
}  // namespace optimizers
