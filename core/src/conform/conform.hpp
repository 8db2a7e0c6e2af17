// SPDX-License-Identifier: Apache-2.0
// What a plugin must do, asked through its tables.
#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"

namespace perigee {

struct Finding {
  std::string group, name, problem;  // no problem: it does
};

// Of a library that is not loaded yet.
std::vector<Finding> conform_library(const std::string& path);
// Of a device: memory, copies, streams, threads, profiler, or one of these groups. Waits for all that it starts.
std::vector<Finding> conform_device(Device& device, const std::string& group = {});

}  // namespace perigee
