// SPDX-License-Identifier: Apache-2.0
// What optimizers of one fused operator share: their common hyperparameters, and the emission of the operator.
#pragma once

#include "perigee/optimizer.hpp"

namespace optimizers {

// Every optimizer's options begin with these.
struct Options {
  double lr = 1e-3, weight_decay = 0;
  pg::Bool maximize = false;

  void check_common() const {
    pg::check_not_negative(lr, "lr");
    pg::check_not_negative(weight_decay, "weight_decay");
  }
};

// OpRef arguments of an update operator; what is its own follows.
#define PG_UPDATE_OP(name, ...) name, "lr", "weight_decay", "maximize", "step" __VA_OPT__(, ) __VA_ARGS__

// One operator a dtype and device. `set(call, first)` sets the attributes that follow the common four.
template <class Set>
void emit_update(const pg::OptimizerStep& step, const pg::OpRef& op, const Options& options, const Set& set) {
  for (const pg::UpdateGroup& group : step.groups()) {
    pg::Call call = step.call(op);
    call.inputs(group.params).inputs(group.gradients);
    for (const auto& slot : group.state) call.inputs(slot);
    call.input({});  // found_inf
    call.set(0, options.lr).set(1, options.weight_decay).set(2, bool(options.maximize)).set(3, step.number());
    set(call, 4);
    call.emit(nullptr, 0);
  }
}

template <class T>
pg::OptimizerSchema<T>& add(const char* name, const char* doc,
                            const char* decay = "L2 penalty, added to the gradient") {
  return pg::add_optimizer<T>(name, doc)
      .attr(&T::lr, "lr", "learning rate")
      .attr(&T::weight_decay, "weight_decay", decay)
      .attr(&T::maximize, "maximize", "climb instead of descending");
}

}  // namespace optimizers
