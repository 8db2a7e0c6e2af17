// SPDX-License-Identifier: Apache-2.0
#include "call/eager.hpp"

#include <algorithm>

#include "base/profile.hpp"
#include "base/rng.hpp"
#include "builder/rule_check.hpp"
#include "call/collective.hpp"
#include "call/in_place.hpp"
#include "call/packed.hpp"
#include "device/captured.hpp"
#include "tensor/dropped.hpp"
#include "tensor/kept.hpp"
#include "tensor/watch.hpp"

namespace perigee {
namespace {

using Tensors = SmallVector<TensorRef, 4>;
using Pointers = SmallVector<Tensor*, 4>;

// ---- profiles ----

// "float32 [64, 128], [128, 10] -> [64, 10]": a dtype stands where it is another than that before.
const char* described(Signature& s) {
  if (const char* known = s.described.load(std::memory_order_relaxed); known != nullptr) return known;
  std::string text;
  uint32_t dtype = 0;
  bool first = true;
  auto add = [&](const Meta* meta) {
    if (!first) text += ", ";
    first = false;
    if (meta == nullptr) {
      text += "none";
      return;
    }
    if (meta->dtype != dtype) text += std::string(pg::dtype_name(meta->dtype)) + " ";
    dtype = meta->dtype;
    text += shape_text(*meta);
  };
  for (const MetaRef& meta : s.inputs) add(meta.get());
  text += text.empty() ? "-> " : " -> ";
  first = true;
  for (uint32_t i = 0; i < s.visible && i < s.outputs.size(); i++) add(s.outputs[i].meta.get());
  const char* kept = interned(text);
  s.described.store(kept, std::memory_order_relaxed);
  return kept;
}

// What a kernel reads and writes at least.
uint64_t traffic(const Signature& s) {
  int64_t bytes = 0;
  for (const MetaRef& meta : s.inputs) bytes += meta ? std::max<int64_t>(meta->bytes, 0) : 0;
  for (const OutputPlan& plan : s.outputs)
    if (!plan.absent && plan.meta) bytes += std::max<int64_t>(plan.meta->bytes, 0);
  return static_cast<uint64_t>(bytes);
}

void note(ProfileSpan& span, ProfileKind kind, Signature& s, uint64_t sequence = 0) {
  span.done(kind, s.op->info->name, s.device->id, traffic(s), described(s), sequence);
}

Pointers pointers(const Tensors& tensors) {
  Pointers raw;
  for (const TensorRef& t : tensors) raw.push_back(t.get());
  return raw;
}

Tensors allocate_outputs(Signature& s, Tensor* const* inputs) {
  Tensors made;
  for (size_t i = 0; i < s.outputs.size(); i++) {
    if (s.outputs[i].absent) {
      made.emplace_back();
    } else if (i == 0 && s.in_place) {
      made.push_back(TensorRef::share(inputs[0]));
    } else {
      made.push_back(make_dense(*s.device, s.outputs[i].meta, s.op->info->name));
    }
  }
  return made;
}

// Tells who records a compiled function what has just been launched.
void note_launch(Signature& s, Tensor* const* inputs, const void* attrs, const TensorRef* outputs) {
  if (ambient().launches == nullptr) [[likely]]
    return;
  SmallVector<Tensor*, 4> made(s.outputs.size());
  for (size_t i = 0; i < made.size(); i++) made[i] = outputs[i].get();
  ambient().launches->launched(s, inputs, static_cast<uint32_t>(s.inputs.size()), made.data(),
                               static_cast<uint32_t>(made.size()), attrs);
}

struct Scratch {
  Device& device;
  Block* block = nullptr;
  Device::Pinned extents{};
  ~Scratch() {
    if (block != nullptr) device.allocator.free(block);
    if (extents.data != nullptr) device.release(extents);
  }
};

// Reads what a dynamic kernel published and cuts its outputs to size.
void cut_dynamic(Signature& s, const int64_t* extents, Tensors& outputs) {
  for (size_t i = 0; i < s.outputs.size(); i++) {
    const Meta& bound = *s.outputs[i].meta;
    if (s.outputs[i].dynamic && !s.outputs[i].absent) {
      check_extents(*s.op, s.groups.data(), static_cast<uint32_t>(i), bound, extents);
      MetaRef exact = intern_meta(bound.dtype, bound.rank, extents);
      TensorRef cut = make_tensor(exact, outputs[i]->storage, 0, s.device);
      // A copy, unless little would be saved: the bound may be far more than what is left.
      outputs[i] = exact->bytes * 2 > bound.bytes ? cut : copy_dense(*cut, exact->dtype);
    }
    extents += bound.rank;
  }
}

// What a launch reports at once. A device that it says is lost stays so. What was to be written may have been, in part:
// whoever has saved it must not take it for what it was. Where memory was short nothing has begun.
[[noreturn]] void fail_launch(Signature& s, Tensor* const* written, int32_t code, const pg_error& error) {
  if (written != nullptr && code != PG_E_OUT_OF_MEMORY && code != PG_E_NOT_SUPPORTED) {
    auto raise = [](Tensor* x) {
      if (x != nullptr && x->storage) raise_version(*x->storage);
    };
    if (s.in_place) raise(written[0]);
    uint32_t flat = 0;
    for (uint32_t i = 0; s.writes && i < s.op->info->input_count; i++)
      for (uint32_t k = 0; k < s.groups[i]; k++, flat++)
        if (s.mutates[i]) raise(written[flat]);
  }
  if ((error.flags & PG_ERROR_DEVICE_LOST) != 0) s.device->fail(code, error, "launch");
  pg::fail_as(code, error);
}

void launch_kernel(Signature& s, Pointers& inputs, const void* attrs, Tensors& outputs, pg_address workspace) {
  SmallVector<pg_address, 6> in(inputs.size()), out(outputs.size());
  uint32_t stream = s.device->synchronous ? 0 : ambient().stream;
  for (size_t i = 0; i < inputs.size(); i++)
    in[i] = inputs[i] != nullptr ? present_address(*inputs[i]) : pg_address{0, 0};
  for (size_t i = 0; i < outputs.size(); i++) out[i] = outputs[i] ? outputs[i]->address() : pg_address{0, 0};
  if (!s.device->synchronous) {
    uint32_t flat = 0;
    for (uint32_t i = 0; i < s.op->info->input_count; i++)
      for (uint32_t k = 0; k < s.groups[i]; k++, flat++)
        if (inputs[flat] != nullptr && inputs[flat]->storage) use_on(*inputs[flat]->storage, stream, s.mutates[i] != 0);
    if (s.in_place) use_on(*inputs[0]->storage, stream, true);
  }
  Scratch scratch{*s.device};
  pg_launch launch{};
  launch.size = PG_SIZE(pg_launch, extents);
  launch.device = s.device->ordinal;
  auto turn = s.device->lock(stream);  // a stream takes work from one thread at a time
  launch.stream = s.device->stream(stream);
  launch.sequence = s.device->sequence(s.op->info->name, ambient().origin);
  launch.input_count = static_cast<uint32_t>(inputs.size());
  launch.output_count = static_cast<uint32_t>(outputs.size());
  launch.inputs = s.input_views.data();
  launch.outputs = s.output_views.data();
  launch.groups = s.groups.data();
  launch.input = in.data();
  launch.output = out.data();
  launch.attrs = attrs;
  if (s.workspace > 0 && workspace.buffer == 0) {
    scratch.block = s.device->allocator.alloc(s.workspace, stream);
    workspace = {scratch.block->buffer, scratch.block->offset};
  }
  launch.workspace = workspace;
  if (s.dynamic) {
    uint64_t count = 0;
    for (OutputPlan& o : s.outputs) count += o.meta->rank;
    scratch.extents = s.device->pinned(std::max<uint64_t>(count, 1) * sizeof(int64_t));
    launch.extents = static_cast<int64_t*>(scratch.extents.data);
  }
  pg_address packed[kPackedInputs] = {};
  SmallVector<StorageRef, 2> forms;  // kept until the launch
  if (s.packs && s.op->info->input_count == inputs.size()) {
    for (uint32_t i = 0; i < inputs.size() && i < kPackedInputs; i++)
      if (s.pack_bytes[i] != 0 && inputs[i] != nullptr)
        if (StorageRef form = packed_form(s, *inputs[i], i, launch)) {
          packed[i] = form->address();
          forms.push_back(std::move(form));
        }
    launch.packed = packed;
  }
  if (ambient().capture != nullptr) [[unlikely]]
    return ambient().capture->launch(s, launch);
  pg_error error;
  error.size = PG_SIZE(pg_error, message);
  error.native = 0;
  error.flags = 0;
  error.message[0] = '\0';
  ProfileSpan span;
  int32_t code = s.kernel.table->launch(s.kernel.self, s.kernel.index, s.prepared, &launch, &error);
  if (code != PG_OK) fail_launch(s, inputs.data(), code, error);
  if (span.on()) [[unlikely]]
    note(span, s.device->synchronous ? ProfileKind::kernel : ProfileKind::launch, s, launch.sequence);
  if (s.dynamic) {
    s.device->synchronize(stream);
    cut_dynamic(s, launch.extents, outputs);
  }
}

void launch_seeded(Signature& s, Pointers& inputs, const void* attrs, Tensors& outputs, pg_address workspace = {0, 0}) {
  if (s.op->info->effect != PG_EFFECT_RANDOM || ambient().capture != nullptr) {
    launch_kernel(s, inputs, attrs, outputs, workspace);
    return;
  }
  auto* bytes = static_cast<const uint8_t*>(attrs);
  SmallVector<uint8_t, 256> seeded(bytes, bytes + s.op->info->attr_size);
  int64_t elements = s.outputs.empty() ? 1 : s.outputs[0].meta->numel;
  RngState state = draw(elements);
  std::memcpy(seeded.data() + s.op->seed_offset, &state.seed, sizeof state.seed);
  std::memcpy(seeded.data() + s.op->offset_offset, &state.offset, sizeof state.offset);
  try {
    launch_kernel(s, inputs, seeded.data(), outputs, workspace);
  } catch (const pg::Error&) {
    undo_draw(elements, state);  // a call that is reissued must draw the same
    throw;
  }
}

void run_kernel(Signature& s, Pointers& inputs, const void* attrs, Tensors& outputs) {
  if (s.densify.empty()) {
    launch_seeded(s, inputs, attrs, outputs);
    return note_launch(s, inputs.data(), attrs, outputs.data());
  }
  Tensors dense(inputs.size());
  Pointers given = inputs;
  for (size_t i = 0; i < inputs.size(); i++) {
    if (s.densify[i] == 0) continue;
    dense[i] = copy_as(*inputs[i], s.dense_metas[i]);
    inputs[i] = dense[i].get();
  }
  launch_seeded(s, inputs, attrs, outputs);
  note_launch(s, inputs.data(), attrs, outputs.data());
  for (size_t i = 0; i < inputs.size(); i++)
    if (s.densify[i] == kDensifyWrite) copy_into(*given[i], *dense[i], s.op->info->name);
}

// Copy and fill are the device's own entries.
void run_entry(Signature& s, Pointers& inputs, const void* attrs, Tensors& outputs) {
  if (s.how == How::transfer) {
    outputs[0] = inputs[0]->device == s.device ? alias(*inputs[0]) : move_to(*inputs[0], *s.device);
    return;
  }
  Tensor& y = *outputs[0];
  if (y.meta->numel == 0) return;
  uint32_t stream = s.device->synchronous ? 0 : ambient().stream;
  if (s.how == How::fill) {
    pg_number value = pg::make_number(s.fill);
    if (s.op->role == Role::fill)
      std::memcpy(&value, static_cast<const uint8_t*>(attrs) + s.op->value_offset, sizeof value);
    s.device->fill(with_address(y), value, stream, s.op->info->name);
    return;
  }
  Tensor& x = s.how == How::copy ? *inputs[1] : *inputs[0];
  pg_tensor source = with_address(x), target = with_address(y);
  int64_t stride[PG_MAX_RANK] = {};
  if (s.how == How::copy) {  // broadcast the source
    uint32_t lead = y.meta->rank - x.meta->rank;
    for (uint32_t i = 0; i < x.meta->rank; i++) stride[lead + i] = x.meta->shape[i] == 1 ? 0 : x.meta->stride[i];
    source.rank = y.meta->rank;
    source.shape = y.meta->shape;
    source.stride = stride;
  }
  use_on(*x.storage, stream, false);
  use_on(*y.storage, stream, true);
  s.device->copy(target, source, stream, s.op->info->name);
}

void run_view(Signature& s, const Pointers& inputs, const void* attrs, Tensors& outputs) {
  Tensor& x = *inputs[0];
  auto* bytes = static_cast<const uint8_t*>(attrs);
  for (OutputPlan& plan : s.outputs) {
    TensorRef y = make_tensor(plan.meta, x.storage, x.offset + plan.view_offset, s.device);
    y->view =
        std::make_unique<ViewInfo>(ViewInfo{TensorRef::share(&x), s.op, {bytes, bytes + s.op->info->attr_size}, {}, 0});
    for (size_t i = 1; i < inputs.size(); i++) y->view->others.push_back(describe_only(*inputs[i]));
    y->view->epoch = base_of(x).epoch;
    outputs.push_back(std::move(y));
  }
}

// What a composition gave, as the result of the operator itself: without the history, the views and the memory of
// what it was made from.
TensorRef own_result(Tensor& made, const Signature& s, Tensor* const* inputs) {
  for (size_t i = 0; i < s.inputs.size(); i++)
    if (inputs[i] != nullptr && made.storage && made.storage.get() == inputs[i]->storage.get())
      return copy_dense(made, made.meta->dtype);
  return alias(made);
}

// The tape sees one operator, as it does where there is a kernel and in a graph: a gradient is one rule, whatever
// computes the operator. Only where it has none do the parts record themselves.
void run_decomposed(Signature& s, Tensor* const* inputs, const void* attrs, TensorRef* outputs, uint32_t output_count) {
  const pg_op_info& info = *s.op->info;
  bool constant = (info.traits & PG_OP_NO_GRAD) != 0, whole = constant || info.grad != nullptr;
  bool record = whole && !constant && !s.lean && ambient().grad_enabled;
  uint32_t count = record ? std::max(output_count, static_cast<uint32_t>(s.outputs.size())) : output_count;
  pg_builder builder;
  SmallVector<pg_value, 4> in, out(count, 0);
  for (size_t i = 0; i < s.inputs.size(); i++) in.push_back(reinterpret_cast<pg_value>(inputs[i]));
  pg_expand ask{};
  ask.size = PG_SIZE(pg_expand, outputs);
  ask.user = info.user;
  ask.builder = &builder;
  ask.input_count = static_cast<uint32_t>(in.size());
  ask.output_count = count;
  ask.inputs = in.data();
  ask.groups = s.groups.data();
  ask.attrs = attrs;
  ask.outputs = out.data();
  {
    Scoped<const Autocast*> as_given(ambient().autocast, nullptr);  // the operator as a whole has been cast for
    Scoped<bool> parts(ambient().grad_enabled, ambient().grad_enabled && !whole);
    Scoped<int32_t> here(ambient().device, s.device->id);
    Scoped<Graph*> eager(ambient().graph, nullptr);  // the inputs are not of the graph that is being made
    pg_error error = pg::make_error();
    pg::check(info.decompose(&ask, &error), error);
  }
  Tensors made;
  for (uint32_t i = 0; i < count; i++) {
    if (out[i] == 0) pg::fail(PG_E_INTERNAL, "its decomposition left an output empty");
    Tensor& part = *pg_builder::tensor(out[i]);
    const OutputPlan& plan = s.outputs[i];
    if (!plan.dynamic && part.meta.get() != plan.meta.get())
      check_part(*s.op, s.groups.data(), i, *part.meta, *plan.meta);
    made.push_back(whole ? own_result(part, s, inputs) : TensorRef::share(&part));
  }
  if (record) {
    Pointers raw = pointers(made);
    TapeCall noted{s.op,  inputs,     static_cast<uint32_t>(s.inputs.size()), s.groups.data(),
                   attrs, raw.data(), static_cast<uint32_t>(raw.size())};
    if (wants_tape(noted)) attach_node(make_node(noted), raw.data(), s.visible);
  }
  for (uint32_t i = 0; i < output_count; i++) outputs[i] = std::move(made[i]);
}

[[noreturn]] void fail_empty(const Tensor& tensor, const char* name) {
  std::string stale = stale_reason(tensor);
  if (!stale.empty()) pg::fail(PG_E_FAILED_PRECONDITION, stale);
  pg::fail(PG_E_INTERNAL, pg::format("%s has no contents here: its operator did not declare it as saved", name));
}

void check_contents(const Signature& s, Tensor* const* inputs) {
  for (size_t i = 0; i < s.inputs.size(); i++) {
    if (inputs[i] == nullptr || inputs[i]->storage) continue;
    uint32_t flat = static_cast<uint32_t>(i), declared = 0;
    while (flat >= s.groups[declared]) flat -= s.groups[declared++];
    const pg_input_info& in = *s.op->info->inputs[declared];
    if (!(in.flags & PG_INPUT_META)) fail_empty(*inputs[i], in.name);
  }
}

void check_writes(Signature& s, Tensor* const* inputs) {
  if (s.in_place) check_writable(*inputs[0], s.op->info->name);
  if (!s.writes || (s.op->info->traits & PG_OP_NO_GRAD)) return;
  uint32_t flat = 0;
  for (uint32_t i = 0; i < s.op->info->input_count; i++)
    for (uint32_t k = 0; k < s.groups[i]; k++, flat++)
      if (inputs[flat] != nullptr && s.mutates[i]) check_writable(*inputs[flat], s.op->info->name);
}

void raise_versions(Signature& s, Tensor* const* inputs) {
  LaunchLog* log = ambient().launches;
  if (s.in_place && inputs[0]->storage) {
    raise_version(*inputs[0]->storage);
    if (log != nullptr) log->raised(*inputs[0]);
  }
  if (!s.writes) return;
  uint32_t flat = 0;
  for (uint32_t i = 0; i < s.op->info->input_count; i++)
    for (uint32_t k = 0; k < s.groups[i]; k++, flat++)
      if (inputs[flat] != nullptr && inputs[flat]->storage && s.mutates[i]) {
        raise_version(*inputs[flat]->storage);
        if (log != nullptr) log->raised(*inputs[flat]);
      }
}

// A call without any of the special cases. Writes all outputs to `made`, but those that it leaves out.
void run_plain(Signature& s, Tensor* const* inputs, const void* attrs, TensorRef* made) {
  pg_address in[Signature::plain_inputs], out[Signature::plain_outputs];
  size_t input_count = s.inputs.size(), output_count = s.outputs.size();
  for (size_t i = 0; i < input_count; i++)
    in[i] = inputs[i] != nullptr ? present_address(*inputs[i]) : pg_address{0, 0};
  for (size_t i = 0; i < output_count; i++) {
    if (s.outputs[i].absent) {
      out[i] = {0, 0};
      continue;
    }
    made[i] = make_dense(*s.device, s.outputs[i].meta, s.op->info->name);
    out[i] = made[i]->address();
  }
  launch_plain(s, in, out, attrs);
  note_launch(s, inputs, attrs, made);
}

void run_plain_recorded(Signature& s, Tensor* const* inputs, const void* attrs, TensorRef* outputs,
                        uint32_t output_count) {
  TensorRef made[Signature::plain_outputs];
  run_plain(s, inputs, attrs, made);
  if (ambient().grad_enabled && !s.lean) {
    Tensor* raw[Signature::plain_outputs];
    for (size_t i = 0; i < s.outputs.size(); i++) raw[i] = made[i].get();
    TapeCall noted{s.op,  inputs, static_cast<uint32_t>(s.inputs.size()), s.groups.data(),
                   attrs, raw,    static_cast<uint32_t>(s.outputs.size())};
    if (wants_tape(noted)) attach_node(make_node(noted), raw, s.visible);
  }
  for (uint32_t i = 0; i < output_count; i++) outputs[i] = std::move(made[i]);
}

}  // namespace

void launch_plain(Signature& s, const pg_address* in, const pg_address* out, const void* attrs, pg_address workspace) {
  Scratch scratch{*s.device};
  if (s.workspace > 0 && workspace.buffer == 0) {
    scratch.block = s.device->allocator.alloc(s.workspace, 0);
    workspace = {scratch.block->buffer, scratch.block->offset};
  }
  pg_launch launch{PG_SIZE(pg_launch, extents),
                   s.device->ordinal,
                   s.stream,
                   0,
                   static_cast<uint32_t>(s.inputs.size()),
                   static_cast<uint32_t>(s.outputs.size()),
                   s.input_views.data(),
                   s.output_views.data(),
                   s.groups.data(),
                   in,
                   out,
                   nullptr,
                   attrs,
                   workspace,
                   nullptr};
  pg_error error;  // not cleared: half a kilobyte that only a failure fills
  error.size = PG_SIZE(pg_error, message);
  error.native = 0;
  error.flags = 0;
  error.message[0] = '\0';
  ProfileSpan span;
  int32_t code = s.kernel.table->launch(s.kernel.self, s.kernel.index, s.prepared, &launch, &error);
  if (code != PG_OK) [[unlikely]]
    fail_launch(s, nullptr, code, error);  // plain calls write into nothing
  if (span.on()) [[unlikely]]
    note(span, ProfileKind::kernel, s);
}

void launch_again(Signature& s, Tensor* const* inputs, Tensor* const* outputs, const void* attrs,
                  pg_address workspace) {
  if (s.plain) {
    pg_address in[Signature::plain_inputs], out[Signature::plain_outputs];
    for (size_t i = 0; i < s.inputs.size(); i++)
      in[i] = inputs[i] != nullptr ? present_address(*inputs[i]) : pg_address{0, 0};
    for (size_t i = 0; i < s.outputs.size(); i++)
      out[i] = outputs[i] != nullptr ? outputs[i]->address() : pg_address{0, 0};
    return launch_plain(s, in, out, attrs, workspace);
  }
  Pointers used(inputs, inputs + s.inputs.size());
  Tensors made;
  for (size_t i = 0; i < s.outputs.size(); i++) made.push_back(TensorRef::share(outputs[i]));
  if (s.how == How::kernel) return launch_seeded(s, used, attrs, made, workspace);
  run_entry(s, used, attrs, made);
}

static void run_known(Signature& s, Tensor* const* inputs, const void* attrs, TensorRef* outputs,
                      uint32_t output_count) {
  if (output_count > s.visible && output_count > s.outputs.size())
    pg::fail_argument(pg::format("has %zu outputs; %u were asked for", s.outputs.size(), output_count));
  check_contents(s, inputs);
  if (s.plain) return run_plain_recorded(s, inputs, attrs, outputs, output_count);
  if (s.how == How::decompose) return run_decomposed(s, inputs, attrs, outputs, output_count);
  if (s.how == How::reshape_copy) {
    TensorRef dense = emit_row_major(*inputs[0]);
    SmallVector<Tensor*, 4> again(inputs, inputs + s.inputs.size());
    again[0] = dense.get();
    return call(*s.op, again.data(), static_cast<uint32_t>(again.size()), s.groups.data(), attrs, 0, outputs,
                output_count);
  }
  if (s.in_place || s.writes) check_writes(s, inputs);
  if (s.how == How::apart) return call_apart(s, inputs, attrs, outputs, output_count);
  if ((s.in_place || s.writes) && call_separated(s, inputs, attrs, outputs, output_count)) return;
  bool records = ambient().grad_enabled && !s.lean;
  TensorRef before;
  if (s.in_place && records)
    before =
        target_before({s.op, inputs, static_cast<uint32_t>(s.inputs.size()), s.groups.data(), attrs, inputs, 1, true});
  Pointers used(inputs, inputs + s.inputs.size());
  Tensors made;
  if (s.how == How::view) {
    run_view(s, used, attrs, made);
  } else if (s.how == How::transfer) {
    made.resize(1);
    run_entry(s, used, attrs, made);
  } else {
    made = allocate_outputs(s, inputs);
    if (s.how == How::kernel) {
      run_kernel(s, used, attrs, made);
    } else if (s.how == How::collective) {
      run_between_processes(*s.between, *s.op, *inputs[0], attrs, *made[0]);
    } else {
      run_entry(s, used, attrs, made);
      note_launch(s, inputs, attrs, made.data());
    }
  }
  // The tape sees the caller's inputs, before versions are raised.
  if (records) {
    Pointers raw = pointers(made);
    TapeCall noted{s.op,        inputs,     static_cast<uint32_t>(s.inputs.size()), s.groups.data(),
                   attrs,       raw.data(), static_cast<uint32_t>(raw.size()),      s.in_place,
                   before.get()};
    if (wants_tape(noted)) {
      NodeRef node = make_node(noted);
      raise_versions(s, inputs);
      if (s.in_place) {
        record_write(*inputs[0], node);
      } else {
        attach_node(node, raw.data(), s.visible);
      }
    } else {
      raise_versions(s, inputs);
    }
  } else {
    raise_versions(s, inputs);
  }
  for (uint32_t i = 0; i < output_count; i++) outputs[i] = std::move(made[i]);
}

void run_eager(Signature& s, Tensor* const* inputs, const void* attrs, TensorRef* outputs, uint32_t output_count) {
  if (ambient().profile == nullptr) [[likely]]
    return run_known(s, inputs, attrs, outputs, output_count);
  ProfileSpan span;
  run_known(s, inputs, attrs, outputs, output_count);
  note(span, ProfileKind::op, s);
}

}  // namespace perigee
