// SPDX-License-Identifier: Apache-2.0
// The services that plugins receive: dimensions, threads, and the builder.
#include <array>
#include <optional>

#include "base/log.hpp"
#include "base/parallel.hpp"
#include "builder/builder.hpp"
#include "device/device.hpp"
#include "plugin/loader.hpp"
#include "tensor/dims.hpp"

namespace perigee {
namespace {

template <class Body>
int64_t dimension(Body&& body) {
  try {
    return body();
  } catch (const pg::Error& e) {
    defer_dim_error(e);
    return -1;
  }
}

int32_t emit(pg_builder* builder, uint32_t id, const pg_value* inputs, const uint32_t* groups, uint32_t input_count,
             const void* attrs, uint32_t flags, pg_value* outputs, uint32_t output_count, pg_error* error) {
  return pg::guard(error, "emit", [&] {
    const Op& target = op(id);
    if ((flags & ~PG_EMIT_IN_PLACE) != 0)
      pg::fail_argument(pg::format("%s: the flags 0x%x are unknown", target.info->name, flags));
    std::vector<TensorRef> made(output_count);
    call_named(target, reinterpret_cast<Tensor* const*>(inputs), input_count, groups, attrs, flags, made.data(),
               output_count);
    for (uint32_t i = 0; i < output_count; i++) outputs[i] = builder->add(std::move(made[i]));
  });
}

int32_t op_find(void*, const char* name, uint32_t* id, const pg_op_info** info, pg_error* error) {
  return pg::guard(error, "op_find", [&] {
    const Op* found = find_op(name);
    if (found == nullptr) pg::fail(PG_E_NOT_FOUND, pg::format("there is no operator '%s'", name));
    *id = found->id;
    if (info != nullptr) *info = found->info;
  });
}

int32_t device_native(void*, const char* type, uint32_t ordinal, const char* what, uint64_t handle, uint64_t* native,
                      pg_error* error) {
  Device* device = nullptr;
  int32_t code = pg::guard(error, "device_native", [&] {
    device = find_made_device(type, ordinal);
    if (device == nullptr) pg::fail(PG_E_NOT_FOUND, pg::format("there is no device %s:%u", type, ordinal));
  });
  return code != PG_OK ? code : device->table()->native(device->self(), ordinal, what, handle, native, error);
}

}  // namespace

pg_host make_host(LoadedPlugin* plugin) {
  pg_host h{};
  h.size = PG_SIZE(pg_host, deterministic);
  h.abi_minor = PG_ABI_MINOR;
  h.context = plugin;
  h.log = [](void* context, int32_t level, const char* message) {
    write_log(level, static_cast<LoadedPlugin*>(context)->name + ": " + message);
  };
  h.parallel_for = [](void*, int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t), void* argument) {
    parallel_for(count, grain, body, argument);
  };
  h.thread_count = [](void*) { return static_cast<int32_t>(thread_count()); };
  h.dim_equal = [](void*, int64_t a, int64_t b) -> int32_t {
    return dimension([&] { return static_cast<int64_t>(dim_equal(a, b)); }) == 1 ? 1 : 0;
  };
  h.dim_add = [](void*, int64_t a, int64_t b) { return dimension([&] { return dim_add(a, b); }); };
  h.dim_mul = [](void*, int64_t a, int64_t b) { return dimension([&] { return dim_mul(a, b); }); };
  h.dim_div = [](void*, int64_t a, int64_t b) { return dimension([&] { return dim_div(a, b); }); };
  h.dim_max = [](void*, int64_t a, int64_t b) { return dimension([&] { return dim_max(a, b); }); };
  h.op_find = op_find;
  h.emit = emit;
  h.describe = [](pg_builder*, pg_value value) -> const pg_tensor* {
    return value == 0 ? nullptr : &pg_builder::tensor(value)->meta->view;
  };
  h.device_of = [](pg_builder*, pg_value value) { return value == 0 ? -1 : pg_builder::tensor(value)->device->id; };
  h.dim_name = [](void*, int64_t d) -> const char* {
    thread_local std::array<std::string, 8> texts;
    thread_local size_t next = 0;
    std::string& text = texts[next++ % texts.size()];
    try {
      text = dim_text(d);
    } catch (const std::exception&) {
      text = "?";
    }
    return text.c_str();
  };
  h.device_native = device_native;
  h.deterministic = [](void*) -> int32_t { return is_deterministic() ? 1 : 0; };
  return h;
}

}  // namespace perigee
