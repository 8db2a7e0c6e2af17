// SPDX-License-Identifier: Apache-2.0
// The placement interposer: decides the device of a call and brings its inputs there.
#include <cstdio>

#include "call/interposers.hpp"
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

// An explicit scope decides; else the inputs do. In a graph an accelerator wins where they differ; in eager code only
// a 0-dimensional tensor may travel unasked.
Device* choose(const PendingCall& call, bool graph) {
  if (ambient().device >= 0) return &device(ambient().device);
  Device* chosen = nullptr;
  bool mixed = false;
  for (int pass = 0; pass < 2 && chosen == nullptr; pass++) {
    for (Tensor* x : call.inputs) {
      if (x == nullptr || (pass == 0 && x->meta->rank == 0 && call.inputs.size() > 1)) continue;
      if (chosen == nullptr || (graph && x->device->accelerator && !chosen->accelerator)) {
        mixed |= chosen != nullptr;
        chosen = x->device;
      } else if (x->device != chosen) {
        mixed = true;
      }
    }
  }
  if (chosen == nullptr) return &default_device();
  if (mixed && !graph) fail_mixed(call);
  return chosen;
}

}  // namespace

void log_placement(const char* name, const Op& op, const Device& device) {
  std::string line = std::string(name) + ": (" + op.info->name + "): " + device.name + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void place(PendingCall& call) {
  if (call.op.role == Role::transfer) {
    int32_t target;
    std::memcpy(&target, call.attrs.data() + call.op.device_offset, sizeof target);
    call.device = &device(target);
    return;
  }
  bool graph = ambient().graph != nullptr;
  for (Tensor* x : call.inputs) graph |= x != nullptr && x->is_graph();
  // What is written to, or only looked at, stays where it is, whatever the scope says; the rest comes to it.
  bool view = (call.op.info->traits & PG_OP_VIEW) != 0;
  Tensor* fixed = call.in_place() || view ? call.inputs[0] : nullptr;
  for (uint32_t i = 0; i < call.inputs.size() && fixed == nullptr; i++)
    if (call.input_flags(i) & PG_INPUT_MUTATES) fixed = call.inputs[i];
  call.device = fixed != nullptr ? fixed->device : choose(call, graph);
  for (uint32_t i = 0; i < call.inputs.size(); i++) {
    Tensor* x = call.inputs[i];
    if (x == nullptr || x->device == call.device) continue;
    if (call.input_flags(i) & (PG_INPUT_META)) continue;
    bool travels = graph || ambient().device >= 0 || x->meta->rank == 0 || call.op.role == Role::copy;
    if (!travels) fail_mixed(call);
    if (call.input_flags(i) & PG_INPUT_MUTATES) fail_mixed(call);
    TensorRef moved = emit_transfer(*x, *call.device);
    for (uint32_t k = i; k < call.inputs.size(); k++)  // one copy, however often it is an input
      if (call.inputs[k] == x && !(call.input_flags(k) & (PG_INPUT_META | PG_INPUT_MUTATES)))
        call.inputs[k] = moved.get();
    call.keep.push_back(std::move(moved));
  }
}

}  // namespace perigee
