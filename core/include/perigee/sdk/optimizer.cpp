// SPDX-License-Identifier: Apache-2.0
#include "perigee/optimizer.hpp"

#include <cmath>

#include "perigee/sdk/declared.hpp"

namespace pg {

std::vector<Update> OptimizerStep::updates() const {
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

std::vector<UpdateGroup> OptimizerStep::groups() const {
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

UpdateGroup& OptimizerStep::find(std::vector<UpdateGroup>& groups, Value param) const {
  uint32_t dtype = param.dtype();
  int32_t device = param.device();
  for (UpdateGroup& group : groups) {
    if (group.params[0].dtype() == dtype && group.params[0].device() == device) return group;
  }
  groups.emplace_back();
  groups.back().state.resize(raw_->slot_count);
  return groups.back();
}

void check_not_negative(double value, const char* name) {
  if (!(value >= 0) || std::isinf(value)) fail_argument(format("%s must be 0 or more, got %g", name, value));
}
void check_fraction(double value, const char* name) {
  if (!(value >= 0 && value < 1)) fail_argument(format("%s must lie in [0, 1), got %g", name, value));
}

// ---- registration ----

void add_optimizer(const pg_optimizer_info& info) { declared<pg_optimizer_info>().push_back(&info); }

const pg_optimizers* optimizer_table() {
  static pg_optimizers table{};
  auto& entries = declared<pg_optimizer_info>();
  table = {PG_SIZE(pg_optimizers, optimizers), static_cast<uint32_t>(entries.size()), entries.data()};
  return &table;
}

}  // namespace pg
