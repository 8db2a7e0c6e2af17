// SPDX-License-Identifier: Apache-2.0
// perigee/optimizer.hpp: how an optimizer is written: a plain struct of hyperparameters and three functions.
//
//   struct Sgd {
//     double lr = 1e-3, momentum = 0;
//     void check() const;                                  // throws on hyperparameters that make no sense
//     uint64_t slots() const { return momentum != 0; }     // mask: bit i, the i-th of `slots` below is needed
//     void update(const pg::OptimizerStep& s) const {      // emit operators that write parameters and state
//       static constinit pg::OpRef op("sgd", "lr", "momentum", "first");
//       for (const pg::UpdateGroup& g : s.groups()) {      // one multi-tensor operator for all that match
//         pg::Call call = s.call(op);
//         call.inputs(g.params).inputs(g.gradients).inputs(g.state[0]);
//         call.set(0, lr).set(1, momentum).set(2, s.number() == 1).emit(nullptr, 0);
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
// PG_EMIT_IN_PLACE. A plugin is, or has in its pg::Provides, a pg::OptimizerTable.
#pragma once

#include <cmath>

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
  std::vector<Update> updates() const {
    std::vector<Update> updates;
    for (uint32_t i = 0; i < raw_->count; i++) {
      if (raw_->gradients[i] == 0) continue;
      Update& update = updates.emplace_back();
      update.param = {raw_->builder, raw_->params[i]};
      update.gradient = {raw_->builder, raw_->gradients[i]};
      for (uint32_t slot = 0; slot < raw_->slot_count; slot++)
        update.state.push_back({raw_->builder, raw_->state[static_cast<size_t>(slot) * raw_->count + i]});
    }
    return updates;
  }

  // The same by dtype and device, for multi-tensor operators.
  std::vector<UpdateGroup> groups() const {
    std::vector<UpdateGroup> groups;
    for (uint32_t i = 0; i < raw_->count; i++) {
      if (raw_->gradients[i] == 0) continue;
      Value param{raw_->builder, raw_->params[i]};
      UpdateGroup& group = find(groups, param);
      group.params.push_back(param);
      group.gradients.push_back({raw_->builder, raw_->gradients[i]});
      for (uint32_t slot = 0; slot < raw_->slot_count; slot++) {
        pg_value state = raw_->state[static_cast<size_t>(slot) * raw_->count + i];
        if (state != 0) group.state[slot].push_back({raw_->builder, state});
      }
    }
    return groups;
  }

 private:
  UpdateGroup& find(std::vector<UpdateGroup>& groups, Value param) const {
    uint32_t dtype = param.dtype();
    int32_t device = param.device();
    for (UpdateGroup& group : groups) {
      if (group.params[0].dtype() == dtype && group.params[0].device() == device) return group;
    }
    groups.emplace_back();
    groups.back().state.resize(raw_->slot_count);
    return groups.back();
  }
  const pg_optimizer_step* raw_;
};

// Hyperparameter checks. Written so that NaN fails.
inline void check_not_negative(double value, const char* name) {
  if (!(value >= 0) || std::isinf(value)) fail_argument(format("%s must be 0 or more, got %g", name, value));
}
inline void check_fraction(double value, const char* name) {
  if (!(value >= 0 && value < 1)) fail_argument(format("%s must lie in [0, 1), got %g", name, value));
}

// ---- registration ----

inline std::vector<const pg_optimizer_info*>& optimizer_entries() {
  static auto* entries = new std::vector<const pg_optimizer_info*>();  // never destroyed: tables point into it
  return *entries;
}

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
    optimizer_entries().push_back(&info_);
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

inline const pg_optimizers* optimizer_table() {
  static pg_optimizers table{};
  table = {PG_SIZE(pg_optimizers, optimizers), static_cast<uint32_t>(optimizer_entries().size()),
           optimizer_entries().data()};
  return &table;
}

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
