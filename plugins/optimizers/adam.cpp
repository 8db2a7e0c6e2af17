// SPDX-License-Identifier: Apache-2.0
// Adam (Kingma and Ba, 2014) and AdamW (Loshchilov and Hutter, 2017): they differ in where the weight decay goes.
#include "perigee/optimizer.hpp"

namespace {

struct AdamBase {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
};

void check_options(const AdamBase& o) {
  pg::check_not_negative(o.lr, "lr");
  pg::check_fraction(o.beta1, "beta1");
  pg::check_fraction(o.beta2, "beta2");
  pg::check_not_negative(o.eps, "eps");
  pg::check_not_negative(o.weight_decay, "weight_decay");
}

void emit_update(const AdamBase& o, bool decoupled, const pg::OptimizerStep& step) {
  static constinit pg::OpRef op("adam", "lr", "beta1", "beta2", "eps", "weight_decay", "step", "decoupled");
  for (const pg::UpdateGroup& group : step.groups()) {
    pg::Call call = step.call(op);
    call.inputs(group.params).inputs(group.gradients).inputs(group.state[0]).inputs(group.state[1]);
    call.set(0, o.lr).set(1, o.beta1).set(2, o.beta2).set(3, o.eps).set(4, o.weight_decay);
    call.set(5, step.number()).set(6, decoupled).emit(nullptr, 0);
  }
}

struct Adam : AdamBase {
  void check() const { check_options(*this); }
  uint64_t slots() const { return 3; }
  void update(const pg::OptimizerStep& step) const { emit_update(*this, false, step); }
};

struct AdamW : AdamBase {
  AdamW() { weight_decay = 0.01; }
  void check() const { check_options(*this); }
  uint64_t slots() const { return 3; }
  void update(const pg::OptimizerStep& step) const { emit_update(*this, true, step); }
};

template <class T>
void describe(pg::OptimizerSchema<T>& schema) {
  schema.attr(&T::lr, "lr", "learning rate")
      .attr(&T::beta1, "beta1", "decay of the running mean of gradients")
      .attr(&T::beta2, "beta2", "decay of the running mean of their squares")
      .attr(&T::eps, "eps", "added to the denominator")
      .attr(&T::weight_decay, "weight_decay",
            "Adam: L2 penalty, added to the gradient; AdamW: part of a weight lost per lr")
      .slots({"exp_avg", "exp_avg_sq"});
}

[[maybe_unused]] const int registered = [] {
  describe(pg::add_optimizer<Adam>("Adam", "Steps scaled by running means of the gradient and its square"));
  describe(pg::add_optimizer<AdamW>("AdamW", "Adam with the weight decay outside the gradient"));
  return 0;
}();

}  // namespace
