// SPDX-License-Identifier: Apache-2.0
// The placement interposer: decides the device of a call and brings its inputs there.
#include <cstdio>

#include "call/interposers.hpp"
#include "graph/body.hpp"
#include "graph/graph.hpp"

namespace perigee {
namespace {

[[noreturn]] void fail_mixed(const PendingCall& call) {
  std::string text = "inputs are on different devices:";
  const Device* first = nullptr;  // of a tensor: a number may stand before it
  uint32_t flat = 0;
  for (uint32_t i = 0; i < call.op.info->input_count; i++) {
    for (uint32_t k = 0; k < call.groups[i]; k++, flat++)
      if (call.inputs[flat] != nullptr) {
        if (first == nullptr) first = call.inputs[flat]->device;
        text += std::string(" ") + call.op.info->inputs[i]->name + " on " + call.inputs[flat]->device->name + ",";
      }
  }
  text.back() = ';';
  pg::fail_argument(text + " move one with :to(\"" + first->name + "\"), or wrap the call in pg.device(name, fn)");
}

// Sources that no scope was in force for go where they are read.
bool is_free(const Tensor& x) {
  if (!x.is_graph()) return !x.device->accelerator;
  const Tensor& base = base_of(const_cast<Tensor&>(x));
  const GraphValue& v = x.graph->values[base.value];
  const GraphValue& source = v.variable == UINT32_MAX ? v : x.graph->values[v.variable];
  return source.kind != ValueKind::node && !source.wished;
}

// An explicit scope decides; else the inputs do, and numbers only where there is nothing else. In a graph an
// accelerator wins where they differ, and what is on none goes to the graph's usual one; in eager code only a
// 0-dimensional tensor may travel unasked.
Device* choose(const PendingCall& call, Graph* graph) {
  if (ambient().device >= 0) {
    Device& scope = device(ambient().device);
    if (graph != nullptr || !scope.absent) return &scope;
    return &default_device();  // made on the way, while something is recorded that is to run elsewhere
  }
  Device* usual = graph != nullptr ? root_of(*graph).usual : nullptr;
  Device* chosen = nullptr;
  bool mixed = false;
  for (int pass = 0; pass < 2 && chosen == nullptr; pass++) {
    for (Tensor* x : call.inputs) {
      if (x == nullptr || (pass == 0 && x->meta->rank == 0 && call.inputs.size() > 1)) continue;
      if (usual != nullptr && is_free(*x)) continue;
      if (chosen == nullptr || (graph != nullptr && x->device->accelerator && !chosen->accelerator)) {
        mixed |= chosen != nullptr;
        chosen = x->device;
      } else if (x->device != chosen) {
        mixed = true;
      }
    }
  }
  if (usual != nullptr && !ambient().derived && (chosen == nullptr || !chosen->accelerator)) return usual;
  if (chosen == nullptr) return usual != nullptr ? usual : graph != nullptr ? &default_device() : &creation_device();
  if (mixed && graph == nullptr && ambient().graph == nullptr) fail_mixed(call);
  return chosen;
}

}  // namespace

std::string shown_operator(const char* name) {
  std::string text;
  bool up = true;
  for (; *name != '\0'; name++) {
    if (*name != '_') text += static_cast<char>(up && *name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name);
    up = *name == '_';
  }
  return text;
}

std::string placement_line(const std::string& name, const char* op, const Device& device) {
  return name + ": (" + shown_operator(op) + "): " + common_name(device) + "\n";
}

void log_placement(const char* name, const Op& op, const Device& device) {
  std::string line = placement_line(name, op.info->name, device);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void place(PendingCall& call) {
  if (call.op.role == Role::transfer) {
    int32_t target;
    std::memcpy(&target, call.attrs.data() + call.op.device_offset, sizeof target);
    call.device = &device(target);
    call.wished = !ambient().derived;
    return;
  }
  Graph* graph = recording_graph(call);
  const bool recording = graph != nullptr || ambient().graph != nullptr;
  // What is written to, or only looked at, stays where it is, whatever the scope says; the rest comes to it.
  bool view = (call.op.info->traits & PG_OP_VIEW) != 0;
  Tensor* fixed = call.in_place() || view ? call.inputs[0] : nullptr;
  for (uint32_t i = 0; i < call.inputs.size() && fixed == nullptr; i++)
    if (call.input_flags(i) & PG_INPUT_MUTATES) fixed = call.inputs[i];
  call.device = fixed != nullptr ? fixed->device : choose(call, graph);
  call.wished = fixed == nullptr && ambient().device >= 0 && !ambient().derived;
  for (uint32_t i = 0; i < call.inputs.size(); i++) {
    Tensor* x = call.inputs[i];
    if (x == nullptr || x->device == call.device) continue;
    if (call.input_flags(i) & (PG_INPUT_META)) continue;
    if (graph != nullptr && !x->is_graph()) continue;  // a constant there, which runs take along as it is then
    bool travels = recording || ambient().device >= 0 || x->meta->rank == 0 || call.op.role == Role::copy;
    if (!travels) fail_mixed(call);
    if (call.input_flags(i) & PG_INPUT_MUTATES) fail_mixed(call);
    Scoped<bool> by_itself(ambient().derived, true);
    TensorRef moved = emit_transfer(*x, *call.device);
    for (uint32_t k = i; k < call.inputs.size(); k++)  // one copy, however often it is an input
      if (call.inputs[k] == x && !(call.input_flags(k) & (PG_INPUT_META | PG_INPUT_MUTATES)))
        call.inputs[k] = moved.get();
    call.keep.push_back(std::move(moved));
  }
}

}  // namespace perigee
