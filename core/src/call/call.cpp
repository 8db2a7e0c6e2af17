// SPDX-License-Identifier: Apache-2.0
// How an operator call passes through the interposers to the eager or the graph builder.
#include "base/fork.hpp"
#include "builder/rule_check.hpp"
#include "call/anomaly.hpp"
#include "call/autocast.hpp"
#include "call/condition.hpp"
#include "call/eager.hpp"
#include "call/interposers.hpp"
#include "call/signature.hpp"
#include "graph/body.hpp"
#include "tape/tape.hpp"
#include "tensor/dims.hpp"
#include "tensor/watch.hpp"

namespace perigee {

namespace {

// The device of a call that needs neither promotion nor placement, or NULL when the slow way must decide.
inline Device* plain_device(Tensor* const* inputs, uint32_t count, bool& graph) {
  Device* device = nullptr;
  for (uint32_t i = 0; i < count; i++) {
    Tensor* x = inputs[i];
    if (x == nullptr) continue;
    if (x->is_graph()) graph = true;
    if (device == nullptr) device = x->device;
    if (x->device != device) return nullptr;
  }
  int32_t scope = ambient().device;
  return device != nullptr && (scope < 0 || scope == device->id) ? device : nullptr;
}

void fill_groups(PendingCall& pending, const uint32_t* groups) {
  uint32_t declared = pending.op.info->input_count, total = 0;
  if (groups != nullptr) {
    pending.groups.assign(groups, groups + declared);
    for (uint32_t i = 0; i < declared; i++)
      if (groups[i] != 1 && !(pending.op.info->inputs[i]->flags & PG_INPUT_VARIADIC))
        pg::fail_argument(pg::format("got %u tensors for %s; it is one", groups[i], pending.op.info->inputs[i]->name));
  } else {
    pending.groups.assign(declared, 1);
  }
  for (uint32_t g : pending.groups) total += g;
  if (groups == nullptr && pending.inputs.size() < declared) {  // trailing optional inputs may be left out
    pending.inputs.resize(declared, nullptr);
  } else if (total != pending.inputs.size()) {
    pg::fail_argument(pg::format("got %zu inputs; expected %u", pending.inputs.size(), total));
  }
}

// Creation without a dtype makes the default one.
void fill_dtype(PendingCall& pending) {
  if (!(pending.op.info->traits & PG_OP_CREATES) || pending.op.dtype_offset == UINT32_MAX) return;
  uint32_t dtype;
  std::memcpy(&dtype, pending.attrs.data() + pending.op.dtype_offset, sizeof dtype);
  if (dtype == 0) std::memcpy(pending.attrs.data() + pending.op.dtype_offset, &ambient().default_dtype, sizeof dtype);
}

// The size of a graph that the call asks for, or 0.
int64_t symbol_in(const PendingCall& call) {
  for (uint32_t i = 0; i < call.op.info->attr_count; i++) {
    const pg_attr_info& attr = *call.op.info->attrs[i];
    if (attr.kind != PG_ATTR_DIMS) continue;
    pg_ints list;
    std::memcpy(&list, call.attrs.data() + attr.offset, sizeof list);
    for (int64_t k = 0; k < list.count; k++)
      if (PG_DIM_IS_SYMBOLIC(list.value[k])) return list.value[k];
  }
  return 0;
}

// Rules of eager calls compute with plain numbers.
void check_numbers(const PendingCall& call) {
  if (int64_t size = symbol_in(call); size != 0)
    pg::fail(PG_E_FAILED_PRECONDITION,
             "'" + dim_text(size) + "' is a size of a graph: it is a number only in the graph's runs");
}

void call_slowly(const Op& op, Tensor* const* inputs, uint32_t input_count, const uint32_t* groups, const void* attrs,
                 uint32_t flags, TensorRef* outputs, uint32_t output_count) {
  check_forked();  // in the child of a fork all calls come here
  PendingCall pending{op, {inputs, inputs + input_count}, {}, {}, flags, nullptr, false, {}};
  auto* bytes = static_cast<const uint8_t*>(attrs);
  pending.attrs.assign(bytes, bytes + op.info->attr_size);
  fill_groups(pending, groups);
  fill_dtype(pending);
  check_inputs(pending);
  if (pending.in_place() && (pending.inputs.empty() || pending.inputs[0] == nullptr))
    pg::fail_argument("the in-place form needs a tensor as first argument");
  promote(pending);
  check_dtypes(pending);
  place(pending);
  if (ambient().log_placement) log_placement(op.info->name, op, *pending.device);
  if (recording_graph(pending) != nullptr) {
    record(pending, outputs, output_count);
    return;
  }
  if (op.has_dims) check_numbers(pending);
  SignatureKey key{&op,
                   pending.device,
                   pending.inputs.data(),
                   static_cast<uint32_t>(pending.inputs.size()),
                   pending.groups.data(),
                   pending.attrs.data(),
                   pending.in_place(),
                   is_lean(op, pending.inputs.data(), static_cast<uint32_t>(pending.inputs.size()),
                           pending.groups.data(), output_count)};
  SignatureRef s = find_signature(key, hash_key(key));
  run_eager(*s, pending.inputs.data(), pending.attrs.data(), outputs, output_count);
  if (ambient().detect_anomaly) {
    check_finite(op, pending.inputs.data(), static_cast<uint32_t>(pending.inputs.size()), pending.groups.data(),
                 pending.attrs.data(), pending.in_place(), outputs, output_count);
  }
}

// Under autocast, and some input is not as it should be. Before promotion, so that each is cast once.
void call_cast(const Op& op, Tensor* const* inputs, uint32_t input_count, const uint32_t* groups, const void* attrs,
               uint32_t flags, TensorRef* outputs, uint32_t output_count) {
  SmallVector<Tensor*, 8> list(inputs, inputs + input_count);
  SmallVector<TensorRef, 4> keep;
  autocast(op, list, groups, keep);
  Scoped<const Autocast*> done(ambient().autocast, nullptr);
  call(op, list.data(), input_count, groups, attrs, flags, outputs, output_count);
}

// With a condition in force: its flag becomes an input, or the call is dropped.
void call_if(const Op& op, Tensor* const* inputs, uint32_t input_count, const uint32_t* groups, const void* attrs,
             uint32_t flags, TensorRef* outputs, uint32_t output_count) {
  SmallVector<Tensor*, 8> list(inputs, inputs + input_count);
  if (groups == nullptr) list.resize(std::max(input_count, op.info->input_count), nullptr);
  if (apply_condition(op, list, attrs, flags, outputs, output_count)) return;
  Scoped<Condition*> decided(ambient().condition, nullptr);
  call(op, list.data(), static_cast<uint32_t>(list.size()), groups, attrs, flags, outputs, output_count);
}

// Whether a call writes into a flat input.
bool writes_input(const Op& op, uint32_t flat, const uint32_t* groups, const void* attrs, uint32_t flags) {
  if (flat == 0 && (flags & emit_in_place)) return true;
  for (uint32_t i = 0; i < op.info->input_count; i++) {
    uint32_t count = groups != nullptr ? groups[i] : 1;
    if (flat < count) return op.mutates(i, attrs);
    flat -= count;
  }
  return false;
}

// In a graph that is being recorded: what a layer holds means the graph's variable. Answers whether there was any, and
// then the call has been made.
bool call_with_variables(const Op& op, Tensor* const* inputs, uint32_t input_count, const uint32_t* groups,
                         const void* attrs, uint32_t flags, TensorRef* outputs, uint32_t output_count) {
  SmallVector<Tensor*, 8> list(inputs, inputs + input_count);
  SmallVector<TensorRef, 4> keep;
  for (uint32_t i = 0; i < input_count; i++) {
    Tensor*& x = list[i];
    if (x == nullptr || x->is_graph()) continue;
    const bool to_write = writes_input(op, i, groups, attrs, flags);
    if (TensorRef variable = graph_stand_in(root_of(*ambient().graph), *x, to_write)) {
      x = variable.get();
      keep.push_back(std::move(variable));
    }
  }
  if (keep.empty()) return false;
  call(op, list.data(), input_count, groups, attrs, flags, outputs, output_count);
  return true;
}

}  // namespace

Graph* recording_graph(const PendingCall& call) {
  const bool sizes = call.op.has_dims && ambient().graph != nullptr && symbol_in(call) != 0;
  Graph* graph = (call.op.info->traits & PG_OP_CREATES) || sizes ? ambient().graph : nullptr;
  for (Tensor* x : call.inputs)
    if (x != nullptr && x->is_graph()) graph = x->graph.get();
  return graph;
}

void call(const Op& op, Tensor* const* inputs, uint32_t input_count, const uint32_t* groups, const void* attrs,
          uint32_t flags, TensorRef* outputs, uint32_t output_count) {
  if (attrs == nullptr) attrs = op.info->defaults;
  if (ambient().items != nullptr) [[unlikely]]
    if (ambient().items->call(op, inputs, input_count, groups, attrs, flags, outputs, output_count)) return;
  if (op.role == Role::copy && !(flags & emit_functional)) flags |= emit_in_place;
  if (ambient().graph != nullptr && !root_of(*ambient().graph).called.empty()) [[unlikely]]
    if (call_with_variables(op, inputs, input_count, groups, attrs, flags, outputs, output_count)) return;
  if (ambient().condition != nullptr) [[unlikely]]
    return call_if(op, inputs, input_count, groups, attrs, flags, outputs, output_count);
  bool graph = ambient().graph != nullptr && ((op.info->traits & PG_OP_CREATES) || op.has_dims);
  if (ambient().autocast != nullptr && autocast_casts(op, inputs, input_count, flags))
    return call_cast(op, inputs, input_count, groups, attrs, flags, outputs, output_count);
  bool direct = op.role != Role::transfer && (input_count == op.info->input_count || groups != nullptr);
  if (direct && !ambient().detect_anomaly && !ambient().log_placement) {
    if (Device* device = plain_device(inputs, input_count, graph); device != nullptr && !graph) {
      SignatureKey key{&op,
                       device,
                       inputs,
                       input_count,
                       groups,
                       attrs,
                       (flags & emit_in_place) != 0,
                       op.hides && is_lean(op, inputs, input_count, groups, output_count)};
      if (Signature* s = recent_signature(key, hash_key(key)); s != nullptr) {
        SignatureRef held = SignatureRef::share(s);  // the call may make others and evict it
        run_eager(*s, inputs, attrs, outputs, output_count);
        return;
      }
    }
  }
  call_slowly(op, inputs, input_count, groups, attrs, flags, outputs, output_count);
}

}  // namespace perigee
