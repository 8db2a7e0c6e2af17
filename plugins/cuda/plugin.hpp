// SPDX-License-Identifier: Apache-2.0
// The plugin as a whole: one per process, between open and close.
#pragma once

#include "device.hpp"

namespace cuda {

class Plugin {
 public:
  Plugin();
  ~Plugin();
  const void* iface(const char* id);
  Device& device() { return device_; }
  bool busy() const { return device_.busy(); }

 private:
  Device device_;
};

}  // namespace cuda
