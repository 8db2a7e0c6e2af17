// SPDX-License-Identifier: Apache-2.0
#include "compile/plan.hpp"

#include <algorithm>
#include <cstring>

#include "memory/layout.hpp"

namespace perigee {
namespace {

bool same_tensor(const TensorPlan& a, const TensorPlan& b) {
  return a.outside == b.outside && a.meta.get() == b.meta.get() && a.device == b.device && a.place == b.place &&
         a.leaf == b.leaf && a.derived == b.derived && a.view == b.view && a.born == b.born && a.cast_of == b.cast_of;
}

}  // namespace

bool same_static(const Item& a, const Item& b) {
  if (a.kind != b.kind || a.op != b.op || a.flags != b.flags || !(a.around == b.around) || a.inputs != b.inputs ||
      a.outputs != b.outputs || a.groups != b.groups || a.casts != b.casts || a.in_place != b.in_place ||
      (a.launch == no_number) != (b.launch == no_number) || a.attrs.size() != b.attrs.size())
    return false;
  if (a.grads.size() != b.grads.size() || a.with_history != b.with_history || a.pauses != b.pauses) return false;
  for (size_t i = 0; i < a.grads.size(); i++)
    if (a.grads[i].leaf != b.grads[i].leaf || a.grads[i].gradient != b.grads[i].gradient) return false;
  const size_t bytes = a.launch != no_number ? a.op->info->static_size : a.attrs.size();
  return bytes == 0 || std::memcmp(a.attrs.data(), b.attrs.data(), bytes) == 0;
}

bool same_until(const Plan& a, const Plan& b, size_t items) {
  if (a.items.size() < items || b.items.size() < items) return false;
  uint32_t tensors = 0;
  auto reach = [&](const std::vector<uint32_t>& numbers) {
    for (uint32_t n : numbers)
      if (n != no_number) tensors = std::max(tensors, n + 1);
  };
  for (size_t i = 0; i < items; i++) {
    if (!same_static(a.items[i], b.items[i])) return false;
    reach(a.items[i].inputs);
    reach(a.items[i].outputs);
    for (const GradientPlan& g : a.items[i].grads) reach({g.gradient});
  }
  if (a.tensors.size() < tensors || b.tensors.size() < tensors) return false;
  for (uint32_t n = 0; n < tensors; n++)
    if (!same_tensor(a.tensors[n], b.tensors[n])) return false;
  const size_t scopes = std::min(a.scopes.size(), b.scopes.size());
  return std::equal(a.scopes.begin(), a.scopes.begin() + static_cast<ptrdiff_t>(scopes), b.scopes.begin());
}

void Plan::find_steps() {
  if (fuse && !cut) regions = cut_regions(*this);
  cut = true;
  std::vector<PlanStep> at(launches.size());
  for (uint32_t i = 0; i < at.size(); i++) at[i].launch = i;
  for (const auto& region : regions) {
    RegionKernel* kernel = region->kernel_for(*this, outlives);
    if (kernel->prepared == nullptr && !kernel->outputs.empty()) continue;  // one by one
    for (uint32_t i : region->view.launches) at[i].launch = no_number;
    if (!kernel->outputs.empty()) at[region->end] = {region->end, region.get(), kernel};
  }
  std::erase_if(at, [](const PlanStep& s) { return s.launch == no_number; });
  steps = std::move(at);
}

void Plan::find_lifetimes() {
  for (Slot& s : slots) s.first = no_number, s.last = 0;
  for (uint32_t i = 0; i < steps.size(); i++) {
    auto lives = [&](uint32_t slot) {
      slots[slot].last = i;
      if (slots[slot].first == no_number) slots[slot].first = i;
    };
    auto touch = [&](const std::vector<uint32_t>& list) {
      for (uint32_t o : list)
        if (o != no_number && !operands[o].place.outside) lives(operands[o].place.base);
    };
    if (steps[i].region != nullptr) {
      touch(steps[i].kernel->input_operands);
      touch(steps[i].kernel->output_operands);
      continue;
    }
    const Launch& l = launches[steps[i].launch];
    touch(l.inputs);
    touch(l.outputs);
    if (l.workspace != no_number) lives(l.workspace);
  }
}

// Whether what an operand holds is needed until a step alone, which makes the other operand, of the same size.
bool Plan::dies_into(uint32_t step, uint32_t from_operand, uint32_t to_operand) const {
  const Operand &from = operands[from_operand], &to = operands[to_operand];
  if (from.place.outside || to.place.outside || from.place.base == to.place.base || from.place.offset != 0 ||
      to.place.offset != 0 || outlives[from.place.base] || outlives[to.place.base])
    return false;
  if (from.tensor->meta.get() != to.tensor->meta.get() || !to.tensor->meta->dense) return false;
  const Slot &source = slots[from.place.base], &target = slots[to.place.base];
  return source.bytes == target.bytes && source.last == step && target.first == step;
}

// Whether a launch may write where its first input lies, which nobody reads afterwards: schemas promise that for
// elementwise operators that can be called in place.
bool Plan::takes_over(uint32_t step) const {
  const Launch& l = launches[steps[step].launch];
  if (!l.signature || l.signature->how != How::kernel || l.signature->in_place || l.signature->writes) return false;
  const uint32_t traits = l.signature->op->info->traits;
  if (!(traits & PG_OP_ELEMENTWISE) || !(traits & PG_OP_IN_PLACE) || l.outputs.size() != 1 || l.inputs.empty() ||
      l.inputs[0] == no_number || l.outputs[0] == no_number)
    return false;
  if (!dies_into(step, l.inputs[0], l.outputs[0])) return false;
  const uint32_t from = operands[l.inputs[0]].place.base;
  for (uint32_t o : l.inputs)  // the same memory seen in another way would change while it is read
    if (o != no_number && o != l.inputs[0] && !operands[o].place.outside && operands[o].place.base == from)
      return false;
  return true;
}

void Plan::take_over(uint32_t from_operand, uint32_t to_operand) {
  const uint32_t from = slots[operands[from_operand].place.base].memory;
  Slot& to = slots[operands[to_operand].place.base];
  to.memory = from;
  slots[from].until = to.last;
}

void Plan::take_over_memory() {
  for (uint32_t s = 0; s < slots.size(); s++) slots[s].memory = s, slots[s].until = slots[s].last;
  for (uint32_t i = 0; i < steps.size(); i++) {
    if (steps[i].region == nullptr) {
      const Launch& l = launches[steps[i].launch];
      if (takes_over(i)) take_over(l.inputs[0], l.outputs[0]);
      continue;
    }
    const RegionKernel& kernel = *steps[i].kernel;
    uint64_t free = ~uint64_t{0};  // inputs that no output has taken yet
    for (size_t k = 0; k < kernel.outputs.size(); k++)
      for (size_t j = 0; j < kernel.input_operands.size() && j < 64; j++) {
        const uint64_t bit = uint64_t{1} << j;
        if (!(kernel.overwrites[k] & free & bit) || !dies_into(i, kernel.input_operands[j], kernel.output_operands[k]))
          continue;
        take_over(kernel.input_operands[j], kernel.output_operands[k]);
        free &= ~bit;
        break;
      }
  }
}

pg_address Plan::workspace_of(const Launch& launch) const {
  if (launch.workspace == no_number) return {0, 0};
  pg_address at = arena->address();
  at.offset += slots[launch.workspace].offset;
  return at;
}

void Plan::lay_out(const std::vector<uint8_t>& outliving) {
  if (arena && outlives == outliving) return;
  outlives = outliving;
  find_steps();
  find_lifetimes();
  take_over_memory();
  std::vector<uint32_t> order;
  std::vector<Lifetime> lifetimes;
  own.clear();
  own_bytes = 0;
  for (uint32_t s = 0; s < slots.size(); s++) {
    if (outlives[s]) {
      own.push_back(s);
      own_bytes += placed_bytes(slots[s].bytes);
    } else if (slots[s].first != no_number && slots[s].memory == s) {
      order.push_back(s);
      lifetimes.push_back({slots[s].bytes, slots[s].first, slots[s].until});
    }
  }
  std::stable_sort(own.begin(), own.end(), [&](uint32_t a, uint32_t b) { return slots[a].bytes > slots[b].bytes; });
  bound = live_at_once(lifetimes);
  arena_bytes = place_lifetimes(lifetimes);
  for (size_t i = 0; i < order.size(); i++) slots[order[i]].offset = lifetimes[i].offset;
  for (Slot& s : slots) s.offset = slots[s.memory].offset;
  arena = StorageRef::adopt(new Storage());
  arena->device = device();
  arena->bytes = arena_bytes;
  loose.clear();
  for (uint32_t i = 0; i < operands.size(); i++) {
    Operand& o = operands[i];
    if (o.place.outside || outlives[o.place.base]) {
      loose.push_back(i);
      o.tensor->storage = nullptr;
      continue;
    }
    o.tensor->storage = arena;
    o.tensor->offset = static_cast<int64_t>(slots[o.place.base].offset) + o.place.offset;
  }
}

}  // namespace perigee
