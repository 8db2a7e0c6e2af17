// SPDX-License-Identifier: Apache-2.0
// What plugin_find.cpp, plugin_loader.cpp and plugin_kinds.cpp share.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "plugin/loader.hpp"

namespace perigee {

// Made once and never destroyed: exit handlers still need it.
struct Loader {
  std::recursive_mutex mutex;  // recursive: a plugin's open may look operators up, which loads other plugins
  std::vector<std::string> folders;
  bool search_again = true;           // folders were added
  std::vector<std::string> searched;  // canonical folders whose manifests have been read
  std::vector<std::unique_ptr<LoadedPlugin>> plugins;
  // The list that find_plugins hands out; replaced, never changed, when one is added, since callers iterate over it.
  std::vector<std::unique_ptr<const std::vector<LoadedPlugin*>>> lists;
  std::vector<LoadedPlugin*> opened;     // in the order in which they were
  uint64_t generation = 1;               // raised whenever a plugin is found
  std::map<std::string, uint64_t> done;  // "kind ops": generation up to which that has been loaded
  bool shut_down = false;
};

Loader& loader();
LoadedPlugin& add_plugin(std::unique_ptr<LoadedPlugin> plugin);     // mutex held
void search_folders();                                              // mutex held
LoadedPlugin find_library(const std::string& path);                 // what its name and its manifest say
std::set<std::string> kind_set(const std::string& kinds);           // in the singular
void read_manifest(const std::string& file, LoadedPlugin& plugin);  // json.cpp
void load_built_in_first(const LoadedPlugin& plugin);               // all that has what this one may bring
void load_all();                                                    // plugin_kinds.cpp
std::string absolute_path(const std::string& path);                 // symbolic links resolved where it exists

}  // namespace perigee
