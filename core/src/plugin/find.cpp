// SPDX-License-Identifier: Apache-2.0
// Where plugins are looked for, and what their manifests say.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/log.hpp"
#include "plugin/state.hpp"

namespace perigee {

namespace fs = std::filesystem;

Loader& loader() {
  static auto& loader = *new Loader;
  return loader;
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  fs::path canonical = fs::canonical(path, error);
  return error ? fs::absolute(path).lexically_normal().string() : canonical.string();
}

LoadedPlugin& add_plugin(std::unique_ptr<LoadedPlugin> plugin) {
  Loader& l = loader();
  l.plugins.push_back(std::move(plugin));
  auto list = std::make_unique<std::vector<LoadedPlugin*>>();
  for (auto& each : l.plugins) list->push_back(each.get());
  l.lists.push_back(std::move(list));
  l.generation++;
  return *l.plugins.back();
}

namespace {

// Two of one name: neither is used, since which one was meant cannot be known; but a foreign one takes no built-in
// one's place, nor takes it away.
void mark_duplicates() {
  auto& plugins = loader().plugins;
  for (size_t i = 0; i < plugins.size(); i++) {
    for (size_t j = i + 1; j < plugins.size(); j++) {
      LoadedPlugin &a = *plugins[i], &b = *plugins[j];
      if (a.name != b.name) continue;
      for (LoadedPlugin* plugin : {&a, &b}) {
        if (a.foreign != b.foreign && !plugin->foreign) continue;
        plugin->duplicate = true;
        if (plugin->opened) continue;  // it was loaded before the other appeared
        plugin->state = PluginState::unavailable;
        plugin->reason = "two plugins are named '" + a.name + "': " + a.path + " and " + b.path + "; remove one";
      }
    }
  }
}

// Where plugins lie in an installation and in a build tree: beside the library that this is part of.
std::string own_folder() {
  Dl_info here{};
  if (dladdr(reinterpret_cast<void*>(&own_folder), &here) == 0 || here.dli_fname == nullptr) return "";
  return fs::path(absolute_path(here.dli_fname)).parent_path().string() + "/perigee/plugins";
}

// What lets others put code into this process; empty where nothing does. A group that is the process's own is its
// user's.
std::string folder_defect(const fs::path& folder) {
  struct stat about {
  }, own{};
  if (stat(folder.c_str(), &about) != 0) return "";
  const bool trusted = stat(own_folder().c_str(), &own) == 0 && own.st_uid == about.st_uid;
  if (about.st_uid != 0 && about.st_uid != geteuid() && !trusted) return "belongs to another user";
  if ((about.st_mode & S_IWOTH) != 0) return "can be written by everyone; chmod o-w";
  if ((about.st_mode & S_IWGRP) != 0 && about.st_gid != getegid() && about.st_gid != 0)
    return "can be written by a group of others; chmod g-w";
  return "";
}

void search_folder(const fs::path& folder, bool foreign) {
  std::vector<fs::path> libraries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".so") libraries.push_back(entry->path());
  }
  if (error) {
    write_log(PG_LOG_DEBUG, "plugin folder " + folder.string() + ": " + error.message());
    return;
  }
  std::sort(libraries.begin(), libraries.end());
  const std::string defect = foreign ? folder_defect(folder) : "";
  for (const fs::path& library : libraries) {
    std::string path = absolute_path(library.string());
    auto same = [&](const auto& known) { return known->path == path; };
    if (std::any_of(loader().plugins.begin(), loader().plugins.end(), same)) continue;
    LoadedPlugin& plugin = add_plugin(std::make_unique<LoadedPlugin>(find_library(path)));
    plugin.foreign = foreign;
    if (defect.empty()) continue;
    plugin.state = PluginState::unavailable;
    plugin.reason = "its folder " + defect;
  }
}

}  // namespace

LoadedPlugin find_library(const std::string& path) {
  LoadedPlugin plugin;
  plugin.path = path;
  fs::path manifest = path;
  plugin.name = manifest.stem().string();
  read_manifest(manifest.replace_extension(".json").string(), plugin);
  return plugin;
}

void search_folders() {
  Loader& l = loader();
  if (!l.search_again) return;
  l.search_again = false;
  std::vector<std::string> wanted;
  size_t foreign = 0;
  if (const char* path = std::getenv("PERIGEE_PLUGIN_PATH"); path != nullptr) {
    std::istringstream parts(path);
    for (std::string part; std::getline(parts, part, ':');) wanted.push_back(part);
    foreign = wanted.size();
  }
  wanted.insert(wanted.end(), l.folders.begin(), l.folders.end());
  if (l.folders.empty()) wanted.push_back(own_folder());  // a front end that has its own folder says so
  bool found = false;
  for (size_t i = 0; i < wanted.size(); i++) {
    const std::string& folder = wanted[i];
    if (folder.empty()) continue;  // would mean the current directory
    std::string path = absolute_path(folder);
    if (std::find(l.searched.begin(), l.searched.end(), path) != l.searched.end()) continue;
    l.searched.push_back(path);
    search_folder(path, i < foreign);
    found = true;
  }
  if (found) mark_duplicates();
}

void add_plugin_path(const std::string& folder) {
  if (folder.empty()) pg::fail_argument("a plugin folder must have a name");
  std::lock_guard guard(loader().mutex);
  loader().folders.push_back(absolute_path(folder));
  loader().search_again = true;
}

const std::vector<LoadedPlugin*>& find_plugins() {
  static const std::vector<LoadedPlugin*> none;
  std::lock_guard guard(loader().mutex);
  search_folders();
  return loader().lists.empty() ? none : *loader().lists.back();
}

}  // namespace perigee
