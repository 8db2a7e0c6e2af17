// SPDX-License-Identifier: Apache-2.0
// The plugin that this run is about: PERIGEE_CONTRACT_PLUGIN, the path of a library with a device and its kernels.
#pragma once

#include <cstdlib>
#include <cstring>
#include <iostream>

#include "host.hpp"

namespace contract {

inline std::string subject_path() {
  const char* path = std::getenv("PERIGEE_CONTRACT_PLUGIN");
  if (path == nullptr) throw std::runtime_error("PERIGEE_CONTRACT_PLUGIN names no plugin");
  return path;
}

// Whether it has a device; where not, says so in the words that CTest takes for a skipped test.
inline bool has_device(Plugin& plugin) {
  std::string reason;
  if (plugin.count(&reason) > 0) return true;
  CHECK(!reason.empty());
  static bool told = false;
  if (!std::exchange(told, true)) std::cout << "contract: skipped, no device: " << reason << std::endl;
  return false;
}

}  // namespace contract

// Opens the plugin under test as `name`, and leaves the test where it has no device.
#define SUBJECT(name)                              \
  contract::Plugin name(contract::subject_path()); \
  if (!contract::has_device(name)) return
