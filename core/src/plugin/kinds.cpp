// SPDX-License-Identifier: Apache-2.0
// Which plugins to load for what is being looked for.
#include <algorithm>
#include <set>
#include <sstream>

#include "base/log.hpp"
#include "plugin/state.hpp"

namespace perigee {

namespace {

std::string singular(const std::string& kind) {
  return !kind.empty() && kind.back() == 's' ? kind.substr(0, kind.size() - 1) : kind;
}

// Nothing is known of a library without a manifest before it is loaded.
bool may_have_kind(const LoadedPlugin& plugin, const std::string& kind) {
  return has_kind(plugin, kind) || (!plugin.has_manifest && !plugin.opened);
}

// Runs load_plugin for all that `wanted` picks, unless that has been done and no plugin was found since.
template <class Wanted>
void load_wanted(const std::string& key, Wanted&& wanted) {
  Loader& l = loader();
  std::lock_guard guard(l.mutex);
  if (l.shut_down) return;
  search_folders();
  uint64_t& done = l.done[key];
  if (done == l.generation) return;
  done = l.generation;
  // What foreign plugins bring is refused where a built-in one has it, whatever order they were found in.
  for (const bool foreign : {false, true}) {
    for (LoadedPlugin* plugin : find_plugins()) {
      if (plugin->foreign != foreign || plugin->opened || plugin->loading ||
          plugin->state == PluginState::unavailable || !wanted(*plugin))
        continue;
      try {
        load_plugin(plugin);
      } catch (const pg::Error& error) {
        write_log(PG_LOG_INFO, error.what());  // `perigee plugins` lists the reason
      }
    }
  }
}

}  // namespace

std::set<std::string> kind_set(const std::string& kinds) {
  std::istringstream parts(kinds);
  std::set<std::string> set;
  for (std::string each; std::getline(parts, each, ',');) {
    each.erase(std::remove(each.begin(), each.end(), ' '), each.end());
    if (!each.empty()) set.insert(singular(each));
  }
  return set;
}

bool has_kind(const LoadedPlugin& plugin, const std::string& kind) {
  return kind_set(plugin.kinds).count(singular(kind)) != 0;
}

void load_kind(const std::string& kind) {
  if (singular(kind) == "kernel") {
    // Kernels are of use for devices that exist only, and vendor libraries are slow to load.
    std::set<std::string> types;
    for (const auto& plugin : find_plugins()) {
      if (plugin->opened && plugin->device != nullptr) types.insert(plugin->device->type);
    }
    for (const std::string& type : types) load_device_type(type);
    return;
  }
  load_wanted("kind " + singular(kind), [&](const LoadedPlugin& plugin) { return may_have_kind(plugin, kind); });
}

void load_device_type(const std::string& type) {
  load_wanted("type " + type, [&](const LoadedPlugin& plugin) {
    const auto& types = plugin.device_types;
    const bool named = std::find(types.begin(), types.end(), type) != types.end();
    if (may_have_kind(plugin, "device")) return named || plugin.name == type || !plugin.has_manifest;
    return has_kind(plugin, "kernels") && (named || types.empty());
  });
}

void load_device_collectives(const std::string& type) {
  load_wanted("collectives " + type, [&](const LoadedPlugin& plugin) {
    const auto& types = plugin.device_types;
    return may_have_kind(plugin, "device_collectives") &&
           (types.empty() || std::find(types.begin(), types.end(), type) != types.end());
  });
}

void load_built_in_first(const LoadedPlugin& plugin) {
  for (const char* kind : {"ops", "layer", "optimizer", "format", "data"})
    if (may_have_kind(plugin, kind)) load_kind(kind);
  for (const std::string& type : plugin.device_types) load_device_type(type);
}

void load_all() {
  load_wanted("everything", [](const LoadedPlugin&) { return true; });
}

std::string unavailable_text() {
  std::string text;
  std::lock_guard guard(loader().mutex);
  for (const LoadedPlugin* plugin : find_plugins()) {
    if (plugin->state != PluginState::unavailable) continue;
    text += (text.empty() ? "" : "; ") + plugin->name + ": " + plugin->reason;
  }
  return text;
}

}  // namespace perigee
