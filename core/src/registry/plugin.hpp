// SPDX-License-Identifier: Apache-2.0
// A plugin as the rooms below the loader know it, and what they ask the loader for: whatever is looked up may have to
// be loaded first. Defined in plugin/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "perigee/capture.h"
#include "perigee/compiler.h"
#include "perigee/data.h"
#include "perigee/device_collectives.h"
#include "perigee/plugin.hpp"
#include "perigee/profiler.h"

namespace perigee {

enum class PluginState { found, loaded, available, unavailable };

// A plugin on disk or in memory. Never destroyed before the process ends; its library stays mapped.
struct LoadedPlugin {
  std::string name, kinds, version, path, reason;
  PluginState state = PluginState::found;
  const pg_plugin* entry = nullptr;
  void* self = nullptr;
  pg_host host{};  // the table it was opened with; context points to this LoadedPlugin
  // Host-side copies of its tables: missing optional entries answer PG_E_UNIMPLEMENTED. NULL where it has none.
  const pg_ops* ops = nullptr;
  const pg_device* device = nullptr;
  const pg_kernels* kernels = nullptr;
  const pg_layers* layers = nullptr;
  const pg_optimizers* optimizers = nullptr;
  const pg_formats* formats = nullptr;
  const pg_collectives* collectives = nullptr;
  const pg_compiler* compiler = nullptr;
  const pg_capture* capture = nullptr;  // beside kernels
  const pg_data* data = nullptr;
  const pg_profiler* profiler = nullptr;
  const pg_device_collectives* device_collectives = nullptr;
  std::vector<std::shared_ptr<void>> keep;  // library handle, table copies
  // From the manifest beside the library, which may be absent.
  bool has_manifest = false, duplicate = false;
  bool foreign = false;  // of PERIGEE_PLUGIN_PATH, or loaded by its path: the built-in ones come before it
  std::vector<std::string> libraries, cpu_features;  // without which it cannot load
  std::vector<std::string> library_folders;          // where the libraries may be besides the system's folders
  std::string library_remedy;                        // what to do when one is missing
  std::vector<std::string> device_types;  // types it brings, or its kernels or collectives serve; empty: not said
  uint32_t abi = 1, min_host_minor = 0;   // of plugin.h: the major it was built for, the oldest host it takes
  bool opened = false;                    // between open and close
  bool loading = false;                   // its open is running: what it looks up meanwhile must not load it again
};

// Reads manifests of all folders on the path (once; again after add_plugin_path). Two of one name are an error that
// both carry as reason.
const std::vector<LoadedPlugin*>& find_plugins();
// Loads every plugin whose manifest names the kind ("ops", "device", "kernels", ...) and registers its tables.
// Failures become reasons. Cheap when there is nothing to do.
void load_kind(const std::string& kind);
void load_device_type(const std::string& type);                      // the device plugin named so, and kernels for it
void load_device_collectives(const std::string& type);               // engines that may serve devices of the type
bool has_kind(const LoadedPlugin& plugin, const std::string& kind);  // "layer" and "layers" are the same
// Every plugin that could not be used, "cuda: no driver; sim: ...", for messages; empty when there is none.
std::string unavailable_text();

}  // namespace perigee
