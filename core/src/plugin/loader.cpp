// SPDX-License-Identifier: Apache-2.0
// Loads one plugin: its library, its entry, its tables; and closes all at the end.
#include "plugin/loader.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#ifndef BOOST_DLL_USE_STD_FS
#define BOOST_DLL_USE_STD_FS
#endif
#include <boost/dll/shared_library.hpp>

#include "base/fork.hpp"
#include "base/log.hpp"
#include "call/signature.hpp"
#include "collective/devices.hpp"
#include "collective/group.hpp"
#include "collective/ranks.hpp"
#include "compile/capture.hpp"
#include "data/run.hpp"
#include "device/list.hpp"
#include "plugin/elf_check.hpp"
#include "plugin/state.hpp"
#include "plugin/table_copy.hpp"
#include "registry/check.hpp"
#include "registry/registry.hpp"

namespace perigee {

namespace {

constexpr const char* kSymbol = "pg_plugin_v1";

// As /proc/cpuinfo names them, which is how manifests do; none where there is no such file: nothing is known then.
const std::set<std::string>& processor_features() {
  static const auto& features = *new std::set<std::string>([] {
    std::set<std::string> found;
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
      if (line.rfind("flags", 0) != 0 && line.rfind("Features", 0) != 0) continue;
      std::istringstream words(line.substr(line.find(':') + 1));
      for (std::string word; words >> word;) found.insert(word);
      break;  // all processors of a machine are taken to be alike
    }
    return found;
  }());
  return features;
}

std::string linker_message(const std::error_code& code) {
  const char* message = dlerror();
  return message != nullptr ? message : code.message();
}

// Stays open: the plugin is about to use it, and the linker then takes what is there under this name, from whichever
// folder it came.
void open_library(const LoadedPlugin& plugin, const std::string& library) {
  if (dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr) return;
  std::string why = linker_message({}), folders;
  for (const std::string& folder : plugin.library_folders) {
    const std::string path = folder + "/" + library;
    folders += (folders.empty() ? "; also looked in " : ", ") + folder;
    if (access(path.c_str(), F_OK) != 0) continue;
    if (dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr) return;
    why = linker_message({});
  }
  std::string text = "needs the library " + library + ": " + why + folders;
  if (!plugin.library_remedy.empty()) text += "; " + plugin.library_remedy;
  pg::fail(PG_E_NOT_FOUND, text);
}

void check_host_minor(uint32_t needed) {
  if (needed <= PG_ABI_MINOR) return;
  pg::fail_support(
      pg::format("needs a host of interface version 1.%u or newer; this Perigee has 1.%u", needed, PG_ABI_MINOR));
}

// What the manifest says, before any of the library is mapped.
void check_requirements(const LoadedPlugin& plugin) {
  if (plugin.abi != 1) {
    pg::fail_support(
        pg::format("was built for major version %u of the plugin interface; this Perigee speaks 1", plugin.abi));
  }
  check_host_minor(plugin.min_host_minor);
  for (const std::string& feature : plugin.cpu_features) {
    if (!processor_features().empty() && processor_features().count(feature) == 0) {
      pg::fail_support("needs the processor feature '" + feature + "', which this machine lacks");
    }
  }
  for (const std::string& library : plugin.libraries) open_library(plugin, library);
}

boost::dll::shared_library& map_library(LoadedPlugin& plugin) {
  if (std::string defect = library_defect(plugin.path); !defect.empty()) pg::fail(PG_E_DATA_LOSS, "the file " + defect);
  auto library = std::make_shared<boost::dll::shared_library>();
  std::error_code code;
  // Resolved at once, or a missing symbol would end the process later; local, so that plugins do not see each other.
  library->load(plugin.path, code, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  if (code || !library->is_loaded()) pg::fail(PG_E_FAILED_PRECONDITION, linker_message(code));
  plugin.keep.push_back(library);  // for good, even when something below fails: it may have started threads
  return *library;
}

const pg_plugin* find_entry(boost::dll::shared_library& library) {
  if (library.has(kSymbol)) return &library.get<const pg_plugin>(kSymbol);
  for (int major = 0; major < 20; major++) {
    std::string other = "pg_plugin_v" + std::to_string(major);
    if (library.has(other)) {
      pg::fail_support(pg::format("was built for major version %d of the plugin interface (%s); this Perigee speaks 1",
                                  major, other.c_str()));
    }
  }
  pg::fail_argument(std::string("exports no ") + kSymbol + ", so it is not a Perigee plugin");
}

void check_entry(const pg_plugin& entry, const LoadedPlugin& plugin) {
  if (entry.magic != PG_MAGIC) pg::fail_argument(pg::format("%s has the wrong magic 0x%08x", kSymbol, entry.magic));
  if (entry.size < PG_SIZE(pg_plugin, close)) {
    pg::fail_argument(pg::format("%s says it has %u bytes; its required part has %u", kSymbol, entry.size,
                                 PG_SIZE(pg_plugin, close)));
  }
  check_host_minor(entry.min_host_minor);
  auto require = [](bool there, const char* what) {
    if (!there) pg::fail_argument(std::string(kSymbol) + ": required entry '" + what + "' is missing");
  };
  require(entry.name != nullptr && entry.name[0] != '\0', "name");
  require(entry.version != nullptr, "version");
  require(entry.kinds != nullptr, "kinds");
  require(entry.open != nullptr, "open");
  require(entry.iface != nullptr, "iface");
  require(entry.close != nullptr, "close");
  if (plugin.has_manifest && plugin.name != entry.name) {
    pg::fail_argument("its manifest names it '" + plugin.name + "', the library '" + entry.name + "'");
  }
  // The manifest decides when it is loaded: what it leaves out would never be found.
  if (plugin.has_manifest && kind_set(plugin.kinds) != kind_set(entry.kinds)) {
    pg::fail_argument("the kinds of its manifest are '" + plugin.kinds + "', those of the library '" + entry.kinds +
                      "'");
  }
}

void check_name_free(const LoadedPlugin& plugin) {
  for (const auto& other : loader().plugins) {
    if (other.get() != &plugin && other->name == plugin.name && other->opened) {
      pg::fail(PG_E_FAILED_PRECONDITION,
               "two plugins are named '" + plugin.name + "': " + other->path + ", which is loaded, and " + plugin.path);
    }
  }
}

// Plugins promise not to throw; one that breaks the promise gets an error, not the end of the process.
template <class Call>
void call_plugin(const char* what, Call&& call) {
  pg_error error = pg::make_error();
  int32_t code;
  try {
    code = call(&error);
  } catch (const std::exception& thrown) {
    pg::fail(PG_E_INTERNAL, std::string(what) + " threw an exception: " + thrown.what());
  } catch (...) {
    pg::fail(PG_E_INTERNAL, std::string(what) + " threw an exception");
  }
  if (code == PG_OK) return;
  throw pg::Error(code, std::string(what) + ": " + pg::message_of(code, error), error.native, error.flags);
}

template <class Table>
void fetch_table(LoadedPlugin& plugin, const char* id, const char* kind, const Table*& into,
                 const Table* (*copy)(const void*, TableMemory&)) {
  const void* raw = nullptr;
  call_plugin("iface", [&](pg_error*) {
    raw = plugin.entry->iface(plugin.self, id);
    return PG_OK;
  });
  if (raw != nullptr) {
    if (!has_kind(plugin, kind)) {
      pg::fail_argument(std::string("it has ") + id + ", but its kinds are '" + plugin.kinds + "'");
    }
    into = copy(raw, plugin.keep);
  } else if (has_kind(plugin, kind)) {
    pg::fail_support("its kinds are '" + plugin.kinds + "', but it has no " + id +
                     "; it may be built for another version of that interface");
  }
}

// One that no kind promises: it says more of another.
template <class Table>
void fetch_beside(LoadedPlugin& plugin, const char* id, const Table*& into,
                  const Table* (*copy)(const void*, TableMemory&)) {
  const void* raw = nullptr;
  call_plugin("iface", [&](pg_error*) {
    raw = plugin.entry->iface(plugin.self, id);
    return PG_OK;
  });
  if (raw != nullptr) into = copy(raw, plugin.keep);
}

void fetch_tables(LoadedPlugin& plugin) {
  fetch_table(plugin, PG_IFACE_OPS, "ops", plugin.ops, copy_ops);
  fetch_table(plugin, PG_IFACE_DEVICE, "device", plugin.device, copy_device);
  fetch_table(plugin, PG_IFACE_KERNELS, "kernels", plugin.kernels, copy_kernels);
  fetch_table(plugin, PG_IFACE_LAYERS, "layer", plugin.layers, copy_layers);
  fetch_table(plugin, PG_IFACE_OPTIMIZERS, "optimizer", plugin.optimizers, copy_optimizers);
  fetch_table(plugin, PG_IFACE_FORMATS, "format", plugin.formats, copy_formats);
  fetch_table(plugin, PG_IFACE_COLLECTIVES, "collective", plugin.collectives, copy_collectives);
  if (plugin.kernels != nullptr) fetch_beside(plugin, PG_IFACE_CAPTURE, plugin.capture, copy_capture);
  fetch_table(plugin, PG_IFACE_COMPILER, "compiler", plugin.compiler, copy_compiler);
  fetch_table(plugin, PG_IFACE_DATA, "data", plugin.data, copy_data);
  fetch_table(plugin, PG_IFACE_PROFILER, "profiler", plugin.profiler, copy_profiler);
  fetch_table(plugin, PG_IFACE_DEVICE_COLLECTIVES, "device_collectives", plugin.device_collectives,
              copy_device_collectives);
}

void close_plugin(LoadedPlugin& plugin) noexcept {
  if (!plugin.opened) return;
  plugin.opened = false;
  try {
    call_plugin("close", [&](pg_error* error) { return plugin.entry->close(plugin.self, error); });
  } catch (const std::exception& error) {
    write_log(PG_LOG_WARNING, "plugin '" + plugin.name + "': " + error.what());
  }
}

// Whether there may be calls already that it could serve: its own devices are made only now.
bool serves_others(const LoadedPlugin& plugin) {
  auto serves = [&](const char* type) {
    return plugin.device == nullptr || std::strcmp(type, plugin.device->type) != 0;
  };
  return (plugin.kernels != nullptr && serves(plugin.kernels->device_type)) ||
         (plugin.compiler != nullptr && serves(plugin.compiler->device_type));
}

// Everything between a path and registered tables. What it throws becomes the plugin's reason.
void open_plugin(LoadedPlugin& plugin) {
  check_requirements(plugin);
  const pg_plugin* entry = find_entry(map_library(plugin));
  check_entry(*entry, plugin);
  plugin.entry = entry;
  plugin.name = entry->name;
  plugin.version = entry->version;
  plugin.kinds = entry->kinds;
  check_name_free(plugin);
  plugin.host = make_host(&plugin);
  call_plugin("open", [&](pg_error* error) { return entry->open(&plugin.host, &plugin.self, error); });
  plugin.opened = true;
  plugin.state = PluginState::loaded;
  std::atexit(shutdown);  // after the library's own handlers were registered, so it runs before them
  try {
    fetch_tables(plugin);
    uint32_t count = 0;
    std::string none;
    if (plugin.device != nullptr) {
      check_device_type(plugin.device->type);
      if (std::string by; device_type_taken(plugin.device->type, by)) {
        pg::fail(PG_E_FAILED_PRECONDITION, std::string("devices of type '") + plugin.device->type +
                                               "' are provided by plugin '" + by + "' already");
      }
      call_plugin("count", [&](pg_error* error) {
        int32_t code = plugin.device->count(plugin.self, &count, error);
        if (code == PG_OK && count == 0) none = error->message[0] != '\0' ? error->message : "it has no devices";
        return code;
      });
    }
    DeviceParts made = make_devices(plugin, count);
    register_tables(&plugin);
    loader().opened.push_back(&plugin);
    list_devices(std::move(made));
    if (serves_others(plugin)) clear_signatures();
    plugin.state = none.empty() ? PluginState::available : PluginState::unavailable;
    plugin.reason = none;
  } catch (...) {
    if (std::find(loader().opened.begin(), loader().opened.end(), &plugin) == loader().opened.end()) {
      close_plugin(plugin);
    }
    throw;
  }
}

}  // namespace

void load_plugin(LoadedPlugin* plugin) {
  Loader& l = loader();
  std::lock_guard guard(l.mutex);
  if (l.shut_down) pg::fail(PG_E_FAILED_PRECONDITION, "Perigee has been shut down");
  if (plugin->opened || plugin->loading) return;
  auto describe = [&] { return "plugin '" + plugin->name + "' (" + plugin->path + "): " + plugin->reason; };
  if (plugin->state == PluginState::unavailable) pg::fail(PG_E_FAILED_PRECONDITION, describe());
  plugin->loading = true;
  try {
    open_plugin(*plugin);
    plugin->loading = false;
  } catch (const std::exception& error) {
    plugin->loading = false;
    plugin->state = PluginState::unavailable;
    plugin->reason = error.what();
    const auto* known = dynamic_cast<const pg::Error*>(&error);
    throw pg::Error(known != nullptr ? known->code : PG_E_INTERNAL, describe());
  }
}

LoadedPlugin* load_plugin(const std::string& path) {
  if (path.empty()) pg::fail_argument("a plugin is loaded by its path, which is empty");
  Loader& l = loader();
  std::lock_guard guard(l.mutex);
  search_folders();
  const std::string canonical = absolute_path(path);
  for (const auto& plugin : l.plugins) {
    if (plugin->path != canonical) continue;
    if (plugin->state == PluginState::unavailable && !plugin->opened && !plugin->duplicate) {
      auto keep = std::move(plugin->keep);  // what was mapped stays so
      *plugin = find_library(canonical);
      plugin->keep = std::move(keep);
    }
    load_plugin(plugin.get());
    return plugin.get();
  }
  LoadedPlugin& plugin = add_plugin(std::make_unique<LoadedPlugin>(find_library(canonical)));
  plugin.foreign = true;
  load_built_in_first(plugin);
  load_plugin(&plugin);
  return &plugin;
}

void shutdown() {
  if (is_forked()) return;  // all of it is the parent's
  Loader& l = loader();
  // Threads of pipelines that are still at work use all of this: the process ends around them.
  if (!end_runs()) return;
  std::lock_guard guard(l.mutex);
  if (l.shut_down) return;
  l.shut_down = true;
  drain_devices();  // nothing may be running when prepared kernels go
  close_ranks();
  close_groups();
  close_device_groups();
  Captured::end_all();
  end_signatures();
  close_devices();
  for (auto plugin = l.opened.rbegin(); plugin != l.opened.rend(); ++plugin) close_plugin(**plugin);
}

}  // namespace perigee
