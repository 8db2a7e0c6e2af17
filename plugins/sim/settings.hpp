// SPDX-License-Identifier: Apache-2.0
// What PERIGEE_SIM_* asks for, read once when the plugin is opened. README.md documents each variable.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace sim {

struct Settings {
  uint32_t devices = 1;
  bool gpu = false;               // answers to the alias "gpu"
  int64_t jitter = 0;             // microseconds: each task waits up to this long before it starts
  uint64_t seed = 0;              // of the jitter
  uint64_t memory = 0;            // bytes a device has; 0: as much as the host
  int64_t fail_alloc = 0;         // this allocation fails, counted from 1 over all devices; 0: none
  int64_t fail_launch = 0;        // this launch fails on its stream
  int64_t fail_copy = 0;          // this upload, download, copy, fill or peer copy fails on its stream
  int64_t lose_device = 0;        // at this launch its device is lost
  std::set<std::string> missing;  // operators that have no kernel here
};

// Throws pg::Error on a value it cannot read.
Settings read_settings();

}  // namespace sim
