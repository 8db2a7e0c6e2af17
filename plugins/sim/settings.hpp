// SPDX-License-Identifier: Apache-2.0
// What PERIGEE_SIM_* asks for, read once when the plugin is opened. README.md documents each variable.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "link.hpp"
#include "perigee/plugin.hpp"

namespace sim {

// The nth of its kind, counted from 1, and all behind it where `on`; 0: none.
struct Fault {
  int64_t nth = 0;
  bool on = false;
  bool hits(int64_t n) const { return nth != 0 && (n == nth || (on && n > nth)); }
};

struct Settings {
  uint32_t devices = 1;
  bool gpu = false;       // answers to the alias "gpu"
  int64_t jitter = 0;     // microseconds: each task waits up to this long before it starts
  uint64_t seed = 0;      // of the jitter
  uint64_t memory = 0;    // bytes a device has; 0: as much as the host
  Fault fail_alloc;       // an allocation fails, counted over all devices
  Fault fail_launch;      // a launch fails on its stream
  Fault fail_copy;        // an upload, download, copy, fill or peer copy fails on its stream
  Fault fail_collective;  // a collective over several devices fails on all of them
  Fault cut_link;         // at this collective the link between its first two members is cut
  Fault stick;            // to this collective its last member does not come before the deadline
  Fault lose_device;      // at this launch its device is lost
  bool races = false;     // unordered accesses of the same bytes are errors
  Links links;
  std::map<std::string, int64_t> delays;                     // nanoseconds by operator, of a clock of its own; or empty
  std::set<std::string> missing;                             // operators that have no kernel here
  std::map<std::string, std::set<uint32_t>> missing_dtypes;  // by operator, or "*": dtypes that it does not take
  std::set<std::string> uncaptured;                          // operators that no plan can hold; "*": there are no plans
};

// Of settings' values. Throw pg::Error with the variable's name.
int64_t number(const char* variable, const std::string& text, int64_t low, int64_t high);
uint64_t bytes(const char* variable, const std::string& text);  // "64MB", "1.5GB", "4096"; units are powers of 1024
std::vector<std::string> split(const std::string& text, char by = ',');

// Throws pg::Error on a value it cannot read.
Settings read_settings();

}  // namespace sim
