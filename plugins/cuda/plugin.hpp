// SPDX-License-Identifier: Apache-2.0
// The plugin as a whole: one per process, between open and close.
#pragma once

#include "activity.hpp"
#include "device.hpp"

namespace cuda {

class Plugin {
 public:
  Plugin();
  ~Plugin();
  const void* iface(const char* id);
  Device& device() { return device_; }
  pg::ActivityLog& activities() { return activity_log(); }
  void begin_activities(uint64_t capacity) { cuda::begin_activities(capacity); }
  void collect_activities() { cuda::collect_activities(); }
  bool busy() const { return device_.busy(); }

 private:
  Device device_;
};

}  // namespace cuda
