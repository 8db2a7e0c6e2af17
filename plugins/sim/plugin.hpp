// SPDX-License-Identifier: Apache-2.0
// The plugin as a whole: one per process, between open and close.
#pragma once

#include "device.hpp"

namespace sim {

class Plugin {
 public:
  Plugin();
  ~Plugin();
  const void* iface(const char* id);
  Device& device() { return device_; }
  pg::ActivityLog& activities() { return device_.activities; }
  void begin_activities(uint64_t) { device_.begin_telling(); }
  bool busy() { return device_.busy(); }

 private:
  Device device_;
  pg_device table_;
  pg_device_collectives collectives_{};
};

// Kernels are not told which instance they belong to; there is only this one.
extern Plugin* plugin;

}  // namespace sim
