// SPDX-License-Identifier: Apache-2.0
// Operators, tensors and gradients.
#include "api.hpp"
#include "plugin/describe.hpp"
#include "tensor/dims.hpp"

using namespace perigee;
using namespace perigee::api;

namespace {

// A thread's result slots: operators have few outputs, and a call must not allocate.
constexpr uint32_t few = 8;

int32_t no_op(uint32_t id) {
  return run("op", [&] { op(id); });
}

const char* text_or_null(std::string text) { return text.empty() ? nullptr : keep_text(std::move(text)); }

}  // namespace

const char* pgc_op_json(const char* name) {
  const char* text = nullptr;
  run("op", [&] { text = text_or_null(op_json(given(name, "the name"))); });
  return text;
}
const char* pgc_op_names_json(void) {
  const char* text = nullptr;
  run("ops", [&] { text = keep_text(op_names_json()); });
  return text;
}
int32_t pgc_find_op(const char* name, uint32_t* id) {
  return run("op", [&] {
    const Op* found = find_op(given(name, "the name"));
    if (found == nullptr) pg::fail(PG_E_NOT_FOUND, pg::format("there is no operator '%s'", name));
    *id = found->id;
  });
}
const void* pgc_op_defaults(uint32_t id) {
  const Op* found = op_at(id);
  return found != nullptr ? found->info->defaults : nullptr;
}

int32_t pgc_call(uint32_t id, pgc_tensor* const* inputs, uint32_t input_count, const uint32_t* groups,
                 const void* attrs, uint32_t flags, pgc_tensor** outputs, uint32_t output_count) {
  const Op* target = op_at(id);
  if (target == nullptr) return no_op(id);
  if (take_interrupt()) [[unlikely]]
    return PG_E_RETRY;
  return run(target->info->name, [&] {
    check_flags(flags);
    SmallVector<TensorRef, few> made(output_count);
    call(*target, get(inputs), input_count, groups, attrs, flags, made.data(), output_count);
    for (uint32_t i = 0; i < output_count; i++) outputs[i] = give(std::move(made[i]));
  });
}

int32_t pgc_call1(uint32_t id, pgc_tensor* x, const void* attrs, pgc_tensor** output) {
  const Op* target = op_at(id);
  if (target == nullptr) return no_op(id);
  if (take_interrupt()) [[unlikely]]
    return PG_E_RETRY;
  return run(target->info->name, [&] {
    TensorRef made;
    Tensor* input = get(x);
    call(*target, &input, 1, nullptr, attrs, 0, &made, 1);
    *output = give(std::move(made));
  });
}

int32_t pgc_call2(uint32_t id, pgc_tensor* x, pgc_tensor* y, const void* attrs, pgc_tensor** output) {
  const Op* target = op_at(id);
  if (target == nullptr) return no_op(id);
  if (take_interrupt()) [[unlikely]]
    return PG_E_RETRY;
  return run(target->info->name, [&] {
    TensorRef made;
    Tensor* inputs[2] = {get(x), get(y)};
    call(*target, inputs, 2, nullptr, attrs, 0, &made, 1);
    *output = give(std::move(made));
  });
}

void pgc_retain(pgc_tensor* t) {
  if (t != nullptr) get(t)->refs.fetch_add(1, std::memory_order_relaxed);
}
void pgc_release(pgc_tensor* t) { TensorRef::drop(get(t)); }
void pgc_release_many(pgc_tensor* const* tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) TensorRef::drop(get(tensors[i]));
}

int32_t pgc_from_host(uint32_t dtype, uint32_t rank, const int64_t* shape, const void* data, int32_t id,
                      pgc_tensor** output) {
  return run("tensor", [&] {
    int32_t chosen = id >= 0 ? id : ambient().device;
    Device& place = chosen >= 0 ? device(chosen) : creation_device();
    // What a graph has that is to run elsewhere is made here: a session takes it where it is read.
    *output = give(from_host(dtype, rank, shape, data, place.absent ? default_device() : place));
  });
}

int32_t pgc_to_host(pgc_tensor* t, void* target, uint64_t bytes) {
  return run("to_host", [&] {
    settle(t);
    Tensor& x = eager(t, "this");
    if (bytes != static_cast<uint64_t>(x.meta->bytes))
      pg::fail_argument(pg::format("room for %llu bytes; the tensor has %lld", static_cast<unsigned long long>(bytes),
                                   static_cast<long long>(x.meta->bytes)));
    to_host(x, target);
  });
}

const pg_tensor* pgc_describe(const pgc_tensor* t) { return &get(t)->meta->view; }
int32_t pgc_device_of(const pgc_tensor* t) { return get(t)->device->id; }
void* pgc_data(pgc_tensor* t) {
  Tensor& x = *get(t);
  if (!x.storage || !x.device->host_visible) return nullptr;
  void* data = nullptr;
  run("data", [&] {
    settle(t);
    x.device->synchronize();
    pg_address a = x.address();
    data = a.buffer == 0 ? nullptr : reinterpret_cast<void*>(a.buffer + a.offset);
  });
  return data;
}
uint64_t pgc_storage_id(const pgc_tensor* t) { return reinterpret_cast<uint64_t>(get(t)->storage.get()); }
uint64_t pgc_version_of(const pgc_tensor* t) {
  const Tensor& x = *get(t);
  run("version", [&] { settle(t); });
  return x.storage ? x.storage->version.load(std::memory_order_relaxed) : base_of(const_cast<Tensor&>(x)).epoch;
}
int32_t pgc_is_graph_tensor(const pgc_tensor* t) { return get(t)->is_graph(); }
uint64_t pgc_tag(const pgc_tensor* t) { return get(t)->tag; }
void pgc_set_tag(pgc_tensor* t, uint64_t tag) { get(t)->tag = tag; }
const char* pgc_dim_name(int64_t dimension) {
  const char* text = nullptr;
  run("dim", [&] { text = keep_text(dim_text(dimension)); });
  return text;
}
int32_t pgc_dim_add(int64_t a, int64_t b, int64_t* result) {
  return run("dim", [&] { *result = dim_add(a, b); });
}
int32_t pgc_dim_mul(int64_t a, int64_t b, int64_t* result) {
  return run("dim", [&] { *result = dim_mul(a, b); });
}
int32_t pgc_dim_div(int64_t a, int64_t b, int64_t* result) {
  return run("dim", [&] { *result = dim_div(a, b); });
}
int32_t pgc_dim_max(int64_t a, int64_t b, int64_t* result) {
  return run("dim", [&] { *result = dim_max(a, b); });
}
int32_t pgc_assign(pgc_tensor* t, pgc_tensor* s) {
  return run("assign", [&] {
    settle(t);
    settle(s);
    Tensor &target = *get(t), &source = *get(s);
    if (target.is_graph() != source.is_graph())
      pg::fail_argument("a tensor of a graph and an eager one cannot be exchanged");
    bool leaf = target.requires_grad;
    NodeRef before = leaf ? target.node : nullptr;
    if (leaf) set_requires_grad(target, false);
    target.meta = source.meta;
    target.storage = source.storage;
    target.offset = source.offset;
    target.device = source.device;
    target.graph = source.graph;
    target.value = source.value;
    target.view = nullptr;
    if (leaf) set_requires_grad(target, true);
    if (before) move_hooks(*before, *target.node);
  });
}

int32_t pgc_requires_grad(const pgc_tensor* t) { return needs_gradient(const_cast<Tensor&>(*get(t))); }
int32_t pgc_set_requires_grad(pgc_tensor* t, int32_t on) {
  return run("requires_grad", [&] {
    settle(t);
    set_requires_grad(*get(t), on != 0);
  });
}
int32_t pgc_is_leaf(const pgc_tensor* t) {
  auto& x = const_cast<Tensor&>(*get(t));
  Edge edge = edge_of(x);
  return !edge.node || edge.node->kind == NodeKind::leaf;
}
int32_t pgc_grad_of(pgc_tensor* t, pgc_tensor** output) {
  TensorRef* gradient = gradient_of(*get(t));
  *output = gradient != nullptr ? give(*gradient) : nullptr;
  return PG_OK;
}
int32_t pgc_set_grad(pgc_tensor* t, pgc_tensor* g) {
  return run("grad", [&] {
    Tensor& x = *get(t);
    TensorRef* place = gradient_of(x);
    if (g == nullptr) {
      if (place != nullptr) pgc_clear_grads(&t, 1);
      return;
    }
    Tensor& gradient = eager(g, "the gradient");
    if (place == nullptr)
      pg::fail(PG_E_FAILED_PRECONDITION,
               "only a leaf that requires gradients, or a tensor after t:retain_grad(), has a gradient");
    if (!same_shape(*x.meta, *gradient.meta) || x.meta->dtype != gradient.meta->dtype || x.device != gradient.device)
      pg::fail_argument(pg::format("the gradient is %s %s on %s; expected %s %s on %s",
                                   pg::dtype_name(gradient.meta->dtype), shape_text(*gradient.meta).c_str(),
                                   gradient.device->name.c_str(), pg::dtype_name(x.meta->dtype),
                                   shape_text(*x.meta).c_str(), x.device->name.c_str()));
    if (Compiled* compiled = compiled_now()) return compiled->set_grad(x, &gradient);
    *place = TensorRef::share(&gradient);
  });
}
void pgc_clear_grads(pgc_tensor* const* tensors, uint32_t count) {
  if (Compiled* compiled = compiled_now(); compiled != nullptr) [[unlikely]] {
    run("zero_grad", [&] { compiled->clear_grads(get(tensors), count); });
    return;
  }
  for (uint32_t i = 0; i < count; i++)
    if (TensorRef* gradient = gradient_of(*get(tensors[i]))) *gradient = nullptr;
}
int32_t pgc_detach(pgc_tensor* t, pgc_tensor** output) {
  return run("detach", [&] {
    Compiled* compiled = compiled_now();
    *output = give(compiled != nullptr ? compiled->detach(*get(t)) : alias(*get(t)));
  });
}
