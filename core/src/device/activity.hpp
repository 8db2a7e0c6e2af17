// SPDX-License-Identifier: Apache-2.0
// What asynchronous devices say of themselves in a profile: plugins with pg.profiler/0.
#pragma once

#include <cstdint>
#include <vector>

#include "base/profile.hpp"

namespace perigee {

// From now on devices note what they do, each plugin up to `capacity` activities. What a plugin refuses is logged: the
// profile then sees its devices from the host only.
void start_activities(uint64_t capacity);
// Ends that, and answers what was noted: records of kinds kernel, upload, download and peer, of thread kProfileDevice.
// All work must be over. Adds to `lost` those that had no room.
std::vector<ProfileRecord> collect_activities(uint64_t& lost);
// Gives the records of devices the names, shapes, lines and layers of the launches that asked for them.
void tie_activities(std::vector<ProfileRecord>& records);

}  // namespace perigee
