// SPDX-License-Identifier: Apache-2.0
// What a plugin must do, asked through its tables.
#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"

namespace perigee {

struct Finding {
  std::string group, name, problem;  // no problem: it does
  bool absent = false;               // it could not be asked, and `problem` says why
};

// An option of a source or transform, which is asked with it.
struct PartOption {
  std::string part, name, value;
};

// Of a library that is not loaded yet.
std::vector<Finding> conform_library(const std::string& path);
// Of a device: memory, copies, streams, threads, profiler, collectives, or one of these groups. Waits for all that it
// starts.
std::vector<Finding> conform_device(Device& device, const std::string& group = {});
// Of a plugin's sources, transforms and codecs (perigee/data.h); none where it has no such thing. Loads it.
std::vector<Finding> conform_parts(const std::string& path, const std::vector<PartOption>& given);

}  // namespace perigee
