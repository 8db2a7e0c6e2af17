// SPDX-License-Identifier: Apache-2.0
// The process: errors, plugins, devices, ambient state, random numbers.
#include <sstream>

#include "api.hpp"
#include "base/parallel.hpp"
#include "base/profile.hpp"
#include "base/rng.hpp"
#include "call/autocast.hpp"
#include "call/condition.hpp"
#include "call/signature.hpp"
#include "conform/conform.hpp"
#include "plugin/describe.hpp"
#include "plugin/loader.hpp"
#include "tensor/kept.hpp"

namespace perigee::api {

pg_error& last_error() {
  thread_local pg_error error = pg::make_error();
  return error;
}

namespace {

// What pg_error has no room for: messages that list things.
std::string& long_message() {
  thread_local std::string text;
  return text;
}

void keep_message(const char* text) noexcept {
  try {
    long_message() = std::strlen(text) < sizeof(pg_error::message) ? "" : text;
  } catch (const std::bad_alloc&) {
    long_message().clear();
  }
}

}  // namespace

const char* keep_text(std::string text) {
  thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

int32_t failed(const std::exception* e, const char* where) noexcept {
  pg_error& error = last_error();
  bool last_resort = std::exchange(ambient().last_resort, false);
  int32_t code = PG_E_INTERNAL;
  // A kernel may have named its operator already.
  auto message = [&](const char* text) {
    size_t length = std::strlen(where);
    while (std::strncmp(text, where, length) == 0 && std::strncmp(text + length, ": ", 2) == 0) text += length + 2;
    return text;
  };
  if (auto* known = dynamic_cast<const pg::Error*>(e)) {
    code = pg::set_error(&error, known->code, where, message(known->what()), known->native, known->flags);
    keep_message(message(known->what()));
  } else if (dynamic_cast<const std::bad_alloc*>(e) != nullptr) {
    code = pg::set_error(&error, PG_E_OUT_OF_MEMORY, where, "out of host memory");
  } else {
    code = pg::set_error(&error, PG_E_INTERNAL, where, e != nullptr ? e->what() : "unknown exception");
  }
  if (code != PG_E_OUT_OF_MEMORY || last_resort) return code;
  release_kept();
  return PG_E_RETRY;
}

}  // namespace perigee::api

using namespace perigee;
using namespace perigee::api;

const char* pgc_version(void) { return PERIGEE_VERSION; }
const pg_error* pgc_error(void) { return &last_error(); }
const char* pgc_error_message(void) {
  // The error may be another one by now, which fits.
  const std::string& text = long_message();
  const char* shown = last_error().message;
  return text.compare(0, sizeof(pg_error::message) / 2, shown, 0, sizeof(pg_error::message) / 2) == 0 ? text.c_str()
                                                                                                      : shown;
}
void pgc_again(void) { ambient().last_resort = true; }
void pgc_interrupt(void) { ambient().interrupted = true; }

int32_t pgc_add_plugin_path(const char* folder) {
  return run("add_plugin_path", [&] { add_plugin_path(given(folder, "the folder")); });
}
int32_t pgc_load_plugin(const char* path) {
  return run("load_plugin", [&] { load_plugin(given(path, "the path")); });
}
const char* pgc_plugins_json(int32_t load) {
  const char* text = nullptr;
  run("plugins", [&] { text = keep_text(plugins_json(load != 0)); });
  return text;
}
const char* pgc_devices_json(void) {
  const char* text = nullptr;
  run("devices", [&] { text = keep_text(devices_json()); });
  return text;
}
int32_t pgc_shutdown(void) {
  return run("shutdown", [] { shutdown(); });
}
int32_t pgc_set_threads(int32_t count) {
  return run("threads", [&] {
    if (count < 1) pg::fail_argument(pg::format("%d threads; expected at least 1", count));
    if (count == thread_count()) return;
    settle();
    set_thread_count(count);
    clear_signatures();  // kernels share their work out when they are prepared
  });
}
int32_t pgc_threads(void) { return thread_count(); }
int32_t pgc_set_deterministic(int32_t on) {
  const bool before = is_deterministic();
  if (before == (on != 0)) return before;
  set_deterministic(on != 0);
  clear_signatures();
  return before;
}
int32_t pgc_deterministic(void) { return is_deterministic(); }

int32_t pgc_set_grad_enabled(int32_t on) { return std::exchange(ambient().grad_enabled, on != 0); }
int32_t pgc_grad_enabled(void) { return ambient().grad_enabled; }
int32_t pgc_set_device(int32_t device) { return std::exchange(ambient().device, device); }
int32_t pgc_device(void) { return ambient().device; }
int32_t pgc_set_default_device(int32_t device) { return std::exchange(ambient().usual, device); }
int32_t pgc_default_device(void) { return ambient().usual; }
int32_t pgc_undisturbed(void) {
  if (take_interrupt()) [[unlikely]]
    return 0;
  return ambient().device < 0 && ambient().usual < 0 ? 1 : 0;
}
pgc_graph* pgc_set_graph(pgc_graph* graph) {
  return reinterpret_cast<pgc_graph*>(std::exchange(ambient().graph, reinterpret_cast<Graph*>(graph)));
}
int32_t pgc_set_origin(const char* text) {
  return run("set_origin", [&] { ambient().origin = text != nullptr ? interned(text) : nullptr; });
}
void pgc_put_origin(const char* known) { ambient().origin = known; }
int32_t pgc_set_name_scope(const char* text) {
  return run("set_name_scope", [&] { ambient().name_scope = text != nullptr ? interned(text) : nullptr; });
}
const char* pgc_interned(const char* text) {
  const char* kept = nullptr;
  run("interned", [&] { kept = interned(given(text, "the text")); });
  return kept;
}
int32_t pgc_set_detect_anomaly(int32_t on) {
  bool old = ambient().detect_anomaly;
  ambient().detect_anomaly = on != 0;
  return old ? 1 : 0;
}
int32_t pgc_set_log_placement(int32_t on) { return std::exchange(ambient().log_placement, on != 0); }
int32_t pgc_set_stream(int32_t index) {
  return static_cast<int32_t>(std::exchange(ambient().stream, static_cast<uint32_t>(index < 0 ? 0 : index)));
}
uint32_t pgc_set_default_dtype(uint32_t dtype) {
  if (pg::dtype_class(dtype) != PG_M_FLOAT) return ambient().default_dtype;
  return std::exchange(ambient().default_dtype, dtype);
}
uint32_t pgc_default_dtype(void) { return ambient().default_dtype; }

int32_t pgc_autocast_create(const char* type, uint32_t dtype, pgc_autocast** out) {
  return run("autocast", [&] {
    if (dtype != 0 && dtype != PG_BF16 && dtype != PG_F16)
      pg::fail_argument(pg::format("dtype is %s; expected bfloat16 or float16", pg::dtype_name(dtype)));
    *out = reinterpret_cast<pgc_autocast*>(make_autocast(type == nullptr ? "" : type, dtype).release());
  });
}
void pgc_autocast_release(pgc_autocast* scope) { AutocastRef::drop(reinterpret_cast<Autocast*>(scope)); }
pgc_autocast* pgc_set_autocast(pgc_autocast* scope) {
  const Autocast* old = std::exchange(ambient().autocast, reinterpret_cast<Autocast*>(scope));
  return reinterpret_cast<pgc_autocast*>(const_cast<Autocast*>(old));
}
pgc_autocast* pgc_autocast_scope(void) {
  return reinterpret_cast<pgc_autocast*>(const_cast<Autocast*>(ambient().autocast));
}
uint32_t pgc_autocast_dtype(int32_t id) {
  uint32_t dtype = 0;
  run("autocast", [&] {
    if (ambient().autocast != nullptr) dtype = ambient().autocast->dtype_on(device(id));
  });
  return dtype;
}
int32_t pgc_set_condition(pgc_tensor* skip) {
  return run("condition", [&] {
    settle();
    auto fresh = skip != nullptr ? std::make_unique<Condition>(TensorRef::share(get(skip))) : nullptr;
    std::unique_ptr<Condition> old(std::exchange(ambient().condition, fresh.release()));
  });
}

int32_t pgc_find_device(const char* name, int32_t* out) {
  return run("device", [&] { *out = find_device(given(name, "the name")).id; });
}
int32_t pgc_place_device(const char* name, int32_t* out) {
  return run("device", [&] {
    const std::string wanted = given(name, "the name");
    if (ambient().graph != nullptr) {
      *out = wished_device(wanted).id;
      return;
    }
    try {
      *out = find_device(wanted).id;
    } catch (const pg::Error& e) {
      if (e.code != PG_E_NOT_FOUND) throw;
      throw pg::Error(e.code,
                      std::string(e.what()) +
                          "; a graph may name it: pg.Session{g, allow_soft_placement=true} then runs on another "
                          "device what was placed on one that is not here");
    }
  });
}
int32_t pgc_first_accelerator(int32_t* out) {
  return run("device", [&] {
    const Device* first = first_accelerator();
    *out = first == nullptr ? -1 : first->id;
  });
}
int32_t pgc_set_visible_devices(const char* const* names, uint32_t count) {
  return run("visible_devices", [&] {
    if (names == nullptr) return set_visible_devices(nullptr);
    std::vector<std::string> list(names, names + count);
    set_visible_devices(&list);
  });
}
const char* pgc_device_name(int32_t id) {
  const char* name = nullptr;
  run("device", [&] { name = device(id).name.c_str(); });
  return name;
}
int32_t pgc_synchronize(int32_t id) {
  return run("synchronize", [&] {
    if (id >= 0) return device(id).synchronize();
    for (Device* d : known_devices()) d->synchronize();  // others have nothing to wait for
  });
}
int32_t pgc_get_memory_stats(int32_t id, pgc_memory_stats* out) {
  return run("memory.stats", [&] {
    MemoryStats s = device(id).allocator.stats();
    *out = {s.live,        s.reserved,           s.peak,      s.limit,
            s.allocations, s.device_allocations, s.requested, s.grows ? uint64_t{1} : 0};
  });
}
int32_t pgc_set_memory_limit(int32_t id, uint64_t bytes) {
  return run("memory_limit", [&] { device(id).allocator.set_limit(bytes); });
}
int32_t pgc_set_memory_growth(int32_t id, int32_t on) {
  return run("memory_growth", [&] { device(id).allocator.set_growth(on != 0); });
}
int32_t pgc_split_device(int32_t id, const uint64_t* limits, uint32_t count, int32_t* ids) {
  return run("logical_devices", [&] {
    const std::vector<Device*> parts = split_device(device(id), {limits, limits + count});
    for (uint32_t i = 0; i < count; i++) ids[i] = parts[i]->id;
  });
}
int32_t pgc_fail_allocations(int32_t id, uint64_t after, uint64_t count) {
  return run("memory", [&] { device(id).allocator.fail_allocations(after, count); });
}
int32_t pgc_device_native(int32_t id, const char* what, uint64_t handle, uint64_t* out) {
  return run("device", [&] {
    Device& d = device(id);
    if (d.absent) fail_absent(d.name);
    pg_error error = pg::make_error();
    pg::check(d.table()->native(d.self(), d.ordinal, what, handle, out, &error), error);
  });
}
namespace {
const char* lines_of(const std::vector<Finding>& found) {
  std::string text;
  for (const Finding& f : found) {
    std::string problem = f.problem;
    for (char& c : problem)
      if (c == '\n' || c == '\t') c = ' ';
    text += f.group + "\t" + f.name + "\t" + (f.absent ? "absent" : "") + "\t" + problem + "\n";
  }
  return keep_text(std::move(text));
}
}  // namespace
int32_t pgc_conform_library(const char* path, const char** lines) {
  return run("conform", [&] { *lines = lines_of(conform_library(given(path, "the path"))); });
}
int32_t pgc_conform_device(int32_t id, const char* group, const char** lines) {
  return run("conform", [&] { *lines = lines_of(conform_device(device(id), group == nullptr ? "" : group)); });
}
int32_t pgc_conform_parts(const char* path, const char* options, const char** lines) {
  return run("conform", [&] {
    std::vector<PartOption> given_options;
    std::istringstream text(given(options, "the options"));
    for (std::string line; std::getline(text, line);) {
      const size_t point = line.find('.'), equals = line.find('=');
      if (point == std::string::npos || equals == std::string::npos || equals < point)
        pg::fail_argument("expected NAME.OPTION=VALUE, got \"" + line + "\"");
      given_options.push_back(
          {line.substr(0, point), line.substr(point + 1, equals - point - 1), line.substr(equals + 1)});
    }
    *lines = lines_of(conform_parts(given(path, "the path"), given_options));
  });
}
int32_t pgc_reset_peak(int32_t id) {
  return run("memory.reset_peak", [&] { device(id).allocator.reset_peak(); });
}
int32_t pgc_empty_cache(int32_t id) {
  return run("empty_cache", [&] {
    release_kept();
    auto empty = [](Device& d) { d.allocator.empty_cache(), d.empty_pinned(); };
    if (id >= 0) return empty(device(id));
    for (Device* d : devices()) empty(*d);
  });
}
uint64_t pgc_live_bytes(void) { return live_bytes(); }
uint64_t pgc_own_bytes(void) { return own_bytes(); }

int32_t pgc_manual_seed(uint64_t seed) {
  return run("manual_seed", [&] {
    settle();
    manual_seed(seed);
  });
}
int32_t pgc_rng_state(uint64_t* seed, uint64_t* offset) {
  return run("rng_state", [&] {
    settle();
    RngState s = rng_state();
    *seed = s.seed;
    *offset = s.offset;
  });
}
int32_t pgc_set_rng_state(uint64_t seed, uint64_t offset) {
  return run("rng_state", [&] {
    settle();
    set_rng_state({seed, offset});
  });
}
