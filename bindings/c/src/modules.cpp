// SPDX-License-Identifier: Apache-2.0
// Layers and optimizers that plugins provide.
#include "api.hpp"
#include "base/profile.hpp"
#include "plugin/describe.hpp"

using namespace perigee;
using namespace perigee::api;

namespace {

template <class Find>
const char* json(const char* where, Find&& find) {
  const char* text = nullptr;
  run(where, [&] {
    std::string found = find();
    if (!found.empty()) text = keep_text(std::move(found));
  });
  return text;
}

using Values = SmallVector<pg_value, 8>;

Values values(pgc_tensor* const* tensors, uint32_t count) {
  Values v(count);
  for (uint32_t i = 0; i < count; i++) v[i] = reinterpret_cast<pg_value>(tensors[i]);
  return v;
}

}  // namespace

const char* pgc_layer_json(const char* name) {
  return json("layer", [&] { return layer_json(given(name, "the name")); });
}
const char* pgc_layer_names_json(void) { return json("layers", layer_names_json); }
int32_t pgc_find_layer(const char* name, uint32_t* id) {
  return run("layer", [&] {
    const Layer* found = find_layer(given(name, "the name"));
    if (found == nullptr) pg::fail(PG_E_NOT_FOUND, pg::format("there is no layer '%s'", name));
    *id = found->id;
  });
}
int32_t pgc_layer_parameters(uint32_t id, void* attrs, pgc_tensor* input, pg_param* params) {
  return run_on("layer", id, layer, [&](const pg_layer_info& info) {
    std::vector<pg_param*> pointers;
    for (uint32_t i = 0; i < info.param_count; i++) {
      params[i] = pg_param{};
      params[i].size = PG_SIZE(pg_param, shape);
      pointers.push_back(&params[i]);
    }
    pg_error error = pg::make_error();
    pg::check(info.parameters(info.user, attrs, input != nullptr ? &get(input)->meta->view : nullptr, pointers.data(),
                              &error),
              error);
  });
}
int32_t pgc_layer_call(uint32_t id, const void* attrs, int32_t training, const char* path, pgc_tensor* const* params,
                       pgc_tensor* const* inputs, pgc_tensor** outputs) {
  Compiled* compiled = compiled_now();
  LayerCall call{id, training != 0, static_cast<const uint8_t*>(attrs), 0, get(params), 0, get(inputs), 0, 0};
  if (compiled != nullptr) {
    bool known = false;
    int32_t code = run("layer", [&] { known = compiled->layer(call, reinterpret_cast<Tensor**>(outputs)); });
    if (known || code != PG_OK) return code;
  }
  return run_on("layer", id, layer, [&](const pg_layer_info& info) {
    Scoped<const char*> named(ambient().layer, path);
    const LayerStart start = compiled != nullptr ? compiled->begin_layer() : LayerStart{};
    pg_builder builder;
    Values p = values(params, info.param_count), in = values(inputs, info.input_count), out(info.output_count, 0);
    pg_layer_build ask{};
    ask.size = PG_SIZE(pg_layer_build, outputs);
    ask.training = training != 0;
    ask.builder = &builder;
    ask.attrs = attrs;
    ask.param_count = info.param_count;
    ask.input_count = info.input_count;
    ask.params = p.data();
    ask.inputs = in.data();
    ask.outputs = out.data();
    pg_error error = pg::make_error();
    pg::check(info.build(info.user, &ask, &error), error);
    SmallVector<Tensor*, 8> made(info.output_count);
    for (uint32_t i = 0; i < info.output_count; i++) {
      if (out[i] == 0 && i == 0) pg::fail(PG_E_INTERNAL, "build left its first output empty");
      made[i] = pg_builder::tensor(out[i]);
    }
    if (compiled != nullptr) {
      call.attr_size = info.attr_size, call.param_count = info.param_count;
      call.input_count = info.input_count, call.output_count = info.output_count;
      compiled->end_layer(start, call, made.data());
    }
    for (uint32_t i = 0; i < info.output_count; i++)
      outputs[i] = made[i] != nullptr ? give(TensorRef::share(made[i])) : nullptr;
  });
}

const char* pgc_source_json(const char* name) {
  return json("source", [&] { return source_json(given(name, "the name")); });
}
const char* pgc_source_names_json(void) { return json("sources", source_names_json); }
const char* pgc_transform_json(const char* name) {
  return json("transform", [&] { return transform_json(given(name, "the name")); });
}
const char* pgc_transform_names_json(void) { return json("transforms", transform_names_json); }
const char* pgc_codecs_json(void) { return json("codecs", codecs_json); }

const char* pgc_optimizer_json(const char* name) {
  return json("optimizer", [&] { return optimizer_json(given(name, "the name")); });
}
const char* pgc_optimizer_names_json(void) { return json("optimizers", optimizer_names_json); }
int32_t pgc_find_optimizer(const char* name, uint32_t* id) {
  return run("optimizer", [&] {
    const Optimizer* found = find_optimizer(given(name, "the name"));
    if (found == nullptr) pg::fail(PG_E_NOT_FOUND, pg::format("there is no optimizer '%s'", name));
    *id = found->id;
  });
}
int32_t pgc_optimizer_slots(uint32_t id, const void* attrs, uint64_t* mask) {
  return run_on("optimizer", id, optimizer, [&](const pg_optimizer_info& info) {
    pg_error error = pg::make_error();
    pg::check(info.slots_used(info.user, attrs, mask, &error), error);
  });
}
int32_t pgc_optimizer_step(uint32_t id, const void* attrs, uint64_t step, uint32_t count, pgc_tensor* const* params,
                           pgc_tensor* const* gradients, pgc_tensor* const* state) {
  return run_on("optimizer", id, optimizer, [&](const pg_optimizer_info& info) {
    Scoped<bool> no_grad(ambient().grad_enabled, false);
    Scoped<const Autocast*> no_casts(ambient().autocast, nullptr);
    pg_builder builder;
    Values p = values(params, count), g(count), s = values(state, count * info.slot_count);
    for (uint32_t i = 0; i < count; i++) {
      Tensor& x = *get(params[i]);
      Tensor* own = x.requires_grad && x.node ? x.node->gradient.get() : nullptr;
      g[i] = reinterpret_cast<pg_value>(gradients != nullptr ? get(gradients[i]) : own);
    }
    pg_optimizer_step ask{};
    ask.size = PG_SIZE(pg_optimizer_step, state);
    ask.builder = &builder;
    ask.attrs = attrs;
    ask.step = step;
    ask.count = count;
    ask.slot_count = info.slot_count;
    ask.params = p.data();
    ask.gradients = g.data();
    ask.state = s.data();
    pg_error error = pg::make_error();
    ProfileSpan span;
    pg::check(info.build_update(info.user, &ask, &error), error);
    span.done(ProfileKind::optimizer, info.name, -1);
  });
}
