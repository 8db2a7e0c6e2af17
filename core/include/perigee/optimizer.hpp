// SPDX-License-Identifier: Apache-2.0
// perigee/optimizer.hpp: how an optimizer is written: a plain struct of hyperparameters and three functions.
//
//   struct Sgd {
//     double lr = 1e-3, momentum = 0;
//     void check() const;                                  // throws on hyperparameters that make no sense
//     uint64_t slots() const { return momentum != 0; }     // mask: bit i, the i-th of `slots` below is needed
//     void update(const pg::OptimizerStep& s) const {      // emit operators that write parameters and state
//       static constinit pg::OpRef op("sgd", "lr", "momentum", "step");
//       for (const pg::UpdateGroup& g : s.groups()) {      // one multi-tensor operator for all that match
//         pg::Call call = s.call(op);
//         call.inputs(g.params).inputs(g.gradients).inputs(g.state[0]);
//         call.set(0, lr).set(1, momentum).set(2, s.number()).emit(nullptr, 0);
//       }
//     }
//   };
//   PG_OPTIMIZER(Sgd, "SGD", "...")                        // optim.SGD in Lua
//       .attr(&Sgd::lr, "lr", "learning rate")
//       .attr(&Sgd::momentum, "momentum", "part of the last update that goes on")
//       .slots({"momentum_buffer"});
//
// Without an operator of its own, slower, since each line is an operator, but on every device:
//     void update(const pg::OptimizerStep& s) const {
//       for (const pg::Update& u : s.updates()) {
//         pg::assign(u.state[0], u.state[0] * momentum + u.gradient);
//         pg::assign(u.param, u.param - u.state[0] * lr);
//       }
//     }
//
// The struct is the packed attribute struct of the C table; layer.hpp says what its fields may be. An operator that
// updates declares its parameters and state as PG_INPUT_MUTATES; one with an in-place form is emitted with
// PG_EMIT_IN_PLACE. A graph records an update once: in later steps it rewrites the attribute `step`, and those that are
// named as hyperparameters. One that computes with s.number() itself is for eager code alone, and says so in a graph. A
// plugin is, or has in its pg::Provides, a pg::OptimizerTable.
#pragma once

#include "perigee/functions.hpp"
#include "perigee/layer.hpp"

namespace pg {

// Parameters that one multi-tensor operator updates: one dtype, one device.
struct UpdateGroup {
  std::vector<Value> params, gradients;
  std::vector<std::vector<Value>> state;  // by slot; empty where the slot is not in use
};

// One parameter that has a gradient. Slots that are not in use are absent.
struct Update {
  Value param, gradient;
  std::vector<Value> state;
};

class OptimizerStep {
 public:
  explicit OptimizerStep(const pg_optimizer_step* raw) : raw_(raw) {}
  pg_builder* builder() const { return raw_->builder; }
  uint64_t number() const { return raw_->step; }
  Call call(const OpRef& op) const { return Call(raw_->builder, op); }

  // Those parameters that have gradients, in order.
  std::vector<Update> updates() const;

  // The same by dtype and device, for multi-tensor operators.
  std::vector<UpdateGroup> groups() const;

 private:
  UpdateGroup& find(std::vector<UpdateGroup>& groups, Value param) const;
  const pg_optimizer_step* raw_;
};

// Hyperparameter checks. Written so that NaN fails.
void check_not_negative(double value, const char* name);
void check_fraction(double value, const char* name);

// ---- registration ----

void add_optimizer(const pg_optimizer_info& info);

template <class T>
class OptimizerSchema {
 public:
  OptimizerSchema(const char* name, const char* doc) {
    info_.size = PG_SIZE(pg_optimizer_info, build_update);
    info_.attr_size = sizeof(T);
    info_.name = name, info_.doc = doc;
    info_.defaults = &defaults_;
    info_.user = this;
    info_.slots_used = slots_used;
    info_.build_update = build_update;
    add_optimizer(info_);
  }
  OptimizerSchema(const OptimizerSchema&) = delete;

  // `Base` is T, or what T begins with.
  template <class Base, class Field>
  OptimizerSchema& attr(Field Base::*field, const char* name, const char* doc) {
    static_assert(std::is_base_of_v<Base, T>);
    attrs_.add(field, AttrList::kind_of<Field>(), name, doc, PG_ATTR_RUNTIME);
    info_.attrs = attrs_.data();
    info_.attr_count = attrs_.count();
    return *this;
  }
  OptimizerSchema& slots(std::initializer_list<const char*> names) {
    names_ = names;
    info_.slots = names_.data();
    info_.slot_count = static_cast<uint32_t>(names_.size());
    return *this;
  }

 private:
  static int32_t slots_used(void* user, const void* attrs, uint64_t* mask, pg_error* error) noexcept {
    auto& self = *static_cast<OptimizerSchema*>(user);
    return guard(error, self.info_.name, [&] {
      const T& options = *static_cast<const T*>(attrs);
      options.check();
      *mask = options.slots();
    });
  }
  static int32_t build_update(void* user, const pg_optimizer_step* call, pg_error* error) noexcept {
    auto& self = *static_cast<OptimizerSchema*>(user);
    return guard(error, self.info_.name, [&] {
      const T& options = *static_cast<const T*>(call->attrs);
      options.check();  // schedules change hyperparameters between steps
      options.update(OptimizerStep(call));
    });
  }

  T defaults_{};
  pg_optimizer_info info_{};
  AttrList attrs_;
  std::vector<const char*> names_;
};

// The schema lives as long as the process: the table points into it.
template <class T>
OptimizerSchema<T>& add_optimizer(const char* name, const char* doc) {
  return *new OptimizerSchema<T>(name, doc);
}

const pg_optimizers* optimizer_table();

struct OptimizerTable {
  static constexpr const char* id = PG_IFACE_OPTIMIZERS;
  template <class Plugin>
  const void* table() const {
    return optimizer_table();
  }
};

}  // namespace pg

#define PG_OPTIMIZER(Type, name, doc) \
  [[maybe_unused]] static auto& pg_optimizer_##Type = pg::add_optimizer<Type>(name, doc)
