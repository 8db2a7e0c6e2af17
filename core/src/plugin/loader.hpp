// SPDX-License-Identifier: Apache-2.0
// Finds plugins, loads them with Boost.DLL, checks and copies their tables.
#pragma once

#include <string>

#include "registry/plugin.hpp"

namespace perigee {

// Search order: explicit loads, PERIGEE_PLUGIN_PATH (folders separated by ':'), folders added by add_plugin_path; where
// none was added, the folder of plugins beside the library.
void add_plugin_path(const std::string& folder);
// Loads one by its path (a relative one is relative to the current directory), anew where that has failed before, or
// one that was found. Throws what is wrong; a found one also keeps it as its reason.
LoadedPlugin* load_plugin(const std::string& path);
void load_plugin(LoadedPlugin* plugin);
// The services handed to plugins; defined in host.cpp (builder and dimensions) and parallel.cpp (threads).
pg_host make_host(LoadedPlugin* plugin);
// Devices, then plugins, in order. Idempotent; also an exit handler.
void shutdown();

}  // namespace perigee
